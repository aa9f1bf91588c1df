import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { changeLiveKey, requireManageable, requireSecret } from './manage-api-key.ts'
import { type ApiKeyWithSecret, newSecret } from './new-api-key.ts'
import { purgeSessions } from './revoke-api-key.ts'
import { putInForce } from './rules-in-force.ts'

/** Gives the key a new secret in one write. From then on the old one is refused. */
export async function rotateApiKey(deps: BillingDeps, principal: Principal, id: string): Promise<ApiKeyWithSecret> {
  const managed = await requireManageable(deps, principal, id)
  requireSecret(managed, 'It has no secret: the member signs in.')
  const { key, ...stored } = newSecret(deps.pepper())
  const apiKey = await changeLiveKey(deps, managed, { $set: stored, $inc: { rotations: 1 } })
  await putInForce(deps, managed.organizationId)
  await purgeSessions(deps, managed._id)
  return { apiKey, key }
}
