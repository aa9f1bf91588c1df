import { startFiveProcesses } from '../../support/processes/service.ts'
import { endToEnd } from './suite.ts'

endToEnd('five processes', startFiveProcesses)
