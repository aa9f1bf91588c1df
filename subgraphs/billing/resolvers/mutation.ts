import { KisError } from '../../common/errors.ts'
import { type Caller, requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import { assignPlan, deleteOrganization, resumeOrganization, suspendOrganization } from '../accounts/use-cases/change-organization.ts'
import { createApiKey } from '../accounts/use-cases/create-api-key.ts'
import { createOrganization } from '../accounts/use-cases/create-organization.ts'
import type { OtherEraser } from '../accounts/use-cases/erasures/erase-organization.ts'
import { noteFound, notePartEnded, requestErasure } from '../accounts/use-cases/erasures/erasures.ts'
import { revokeApiKey } from '../accounts/use-cases/revoke-api-key.ts'
import { rotateApiKey } from '../accounts/use-cases/rotate-api-key.ts'
import { updateApiKey } from '../accounts/use-cases/update-api-key.ts'
import { updateOrganization } from '../accounts/use-cases/update-organization.ts'
import { type Hold, isRunHold } from '../ledger/domain/wallet.ts'
import { checkpointHold } from '../ledger/holds/checkpoint-hold.ts'
import { dispatchHold } from '../ledger/holds/dispatch-hold.ts'
import { endHoldsOf } from '../ledger/holds/end-holds-of.ts'
import { placeHold, placeRunHold } from '../ledger/holds/place-hold.ts'
import { settleHold } from '../ledger/holds/settle-hold.ts'
import { voidHold } from '../ledger/holds/void-hold.ts'
import { creditWallet } from '../ledger/use-cases/credit-wallet.ts'
import { revokeSession } from '../sessions/use-cases/manage-sessions.ts'
import { openSession } from '../sessions/use-cases/open-session.ts'
import { endSession } from '../sessions/use-cases/use-session.ts'
import type { MutationResolvers } from './generated.ts'

/** A service may only speak of its own data. */
export function requireEraser(caller: Caller | null): OtherEraser {
  const { service } = requireService(caller)
  if (service !== 'knowledge' && service !== 'inference') throw new KisError('permission_denied', `${service} erases no organizations.`)
  return service
}

/** The hold of a run reaches no engine: its calls have holds of their own. */
function toHoldResult(id: string, hold: Hold) {
  return { id, state: isRunHold(hold) ? ('placed' as const) : ('dispatched' as const), amount: BigInt(hold.amount) }
}

export const Mutation: MutationResolvers = {
  createApiKey(_parent, { input }, { deps, caller }) {
    return createApiKey(deps, requirePrincipal(caller), input)
  },

  async updateApiKey(_parent, { input }, { deps, caller }) {
    return { apiKey: await updateApiKey(deps, requirePrincipal(caller), input) }
  },

  rotateApiKey(_parent, { id }, { deps, caller }) {
    return rotateApiKey(deps, requirePrincipal(caller), id)
  },

  async revokeApiKey(_parent, { id }, { deps, caller }) {
    return { apiKey: await revokeApiKey(deps, requirePrincipal(caller), id) }
  },

  async revokeSession(_parent, { id }, { deps, caller }) {
    return { session: await revokeSession(deps, requirePrincipal(caller), id) }
  },

  openSession(_parent, { apiKey, userAgent }, { deps, caller }) {
    requireService(caller)
    return openSession(deps, apiKey, userAgent ?? null)
  },

  endSession(_parent, { token }, { deps, caller }) {
    requireService(caller)
    return endSession(deps, token)
  },

  async updateOrganization(_parent, { input }, { deps, caller }) {
    return { organization: await updateOrganization(deps, requirePrincipal(caller), input) }
  },

  createOrganization(_parent, { input }, { deps, caller }) {
    return createOrganization(deps, requirePrincipal(caller), input)
  },

  async assignPlan(_parent, { input }, { deps, caller }) {
    return { organization: await assignPlan(deps, requirePrincipal(caller), input) }
  },

  async suspendOrganization(_parent, { input }, { deps, caller }) {
    return { organization: await suspendOrganization(deps, requirePrincipal(caller), input) }
  },

  async resumeOrganization(_parent, { id }, { deps, caller }) {
    return { organization: await resumeOrganization(deps, requirePrincipal(caller), id) }
  },

  async deleteOrganization(_parent, { id }, { deps, caller }) {
    return { organization: await deleteOrganization(deps, requirePrincipal(caller), id) }
  },

  async erase(_parent, { input }, { deps, caller }) {
    return { erasure: await requestErasure(deps, requirePrincipal(caller), input) }
  },

  erasureFound(_parent, { input: { id, found, documentIds, notes } }, { deps, caller }) {
    const counts = Object.fromEntries(found.map(({ kind, count }) => [kind, count]))
    return noteFound(deps, requireEraser(caller), id, {
      found: counts,
      ...(documentIds && { documentIds }),
      ...(notes != null && { notes }),
    })
  },

  erasureEnded(_parent, { input: { id, kept } }, { deps, caller }) {
    return notePartEnded(deps, requireEraser(caller), id, kept)
  },

  topUpWallet(_parent, { input }, { deps, caller }) {
    requireScope(caller, 'operator')
    return creditWallet(deps, { ...input, kind: 'top_up' })
  },

  adjustWallet(_parent, { input }, { deps, caller }) {
    requireScope(caller, 'operator')
    return creditWallet(deps, { ...input, kind: 'adjustment' })
  },

  async placeHold(_parent, { input }, { deps, caller }) {
    return toHoldResult(input.id, await placeHold(deps, requirePrincipal(caller), input))
  },

  async placeRunHold(_parent, { input }, { deps, caller }) {
    return toHoldResult(input.id, await placeRunHold(deps, requirePrincipal(caller), input))
  },

  async dispatchHold(_parent, { input }, { deps, caller }) {
    return toHoldResult(input.id, await dispatchHold(deps, requirePrincipal(caller), input.id, input.quantities))
  },

  async checkpointHold(_parent, { input }, { deps, caller }) {
    return toHoldResult(input.id, await checkpointHold(deps, requirePrincipal(caller), input.id, input.quantities, input.ttlSeconds))
  },

  settleHold(_parent, { input }, { deps, caller }) {
    return settleHold(deps, requirePrincipal(caller), input.id, input.quantities, input.source)
  },

  voidHold(_parent, { id }, { deps, caller }) {
    return voidHold(deps, requirePrincipal(caller), id)
  },

  endHoldsOf(_parent, { holder }, { deps, caller }) {
    requireService(caller)
    return endHoldsOf(deps, holder)
  },
}
