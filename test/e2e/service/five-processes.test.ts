import { startFiveProcesses } from '../../support/processes/service.ts'
import { endToEnd } from './suite/index.ts'

endToEnd('five processes', startFiveProcesses)
