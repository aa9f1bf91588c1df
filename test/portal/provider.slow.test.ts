import { administration } from './suite/administration.ts'
import { journey } from './suite/journey.ts'
import { knowledge } from './suite/knowledge.ts'
import { atPortal } from './support/shared-portal.ts'

atPortal('Portal with sign-in at a provider', { hasProvider: true }, [administration, journey, knowledge])
