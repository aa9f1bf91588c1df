import { startEmbedded } from '../../support/processes/service.ts'
import { endToEnd } from './suite/index.ts'

endToEnd('one process', startEmbedded)
