import { accounts } from './suite/accounts.ts'
import { building } from './suite/building.ts'
import { everyPage } from './suite/every-page.ts'
import { setbacks } from './suite/setbacks.ts'
import { troubles } from './suite/troubles.ts'
import { atPortal } from './support/shared-portal.ts'

atPortal('Portal with sign-in by key', { hasProvider: false }, [everyPage, troubles, setbacks, building, accounts])
