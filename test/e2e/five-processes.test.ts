import { startFiveProcesses } from '../support/service.ts'
import { endToEnd } from './suite.ts'

endToEnd('five processes', startFiveProcesses)
