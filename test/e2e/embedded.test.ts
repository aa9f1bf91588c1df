import { startEmbedded } from '../support/service.ts'
import { endToEnd } from './suite.ts'

endToEnd('one process', startEmbedded)
