import { startEmbedded } from '../../support/processes/service.ts'
import { endToEnd } from './suite.ts'

endToEnd('one process', startEmbedded)
