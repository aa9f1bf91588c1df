import { requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { type CreateApiKeyInput, createApiKey } from '../accounts/use-cases/create-api-key.ts'
import { type CreateOrganizationInput, createOrganization } from '../accounts/use-cases/create-organization.ts'
import { revokeApiKey } from '../accounts/use-cases/revoke-api-key.ts'
import { rotateApiKey } from '../accounts/use-cases/rotate-api-key.ts'
import { type UpdateApiKeyInput, updateApiKey } from '../accounts/use-cases/update-api-key.ts'
import { assignPlan, updateOrganization } from '../accounts/use-cases/update-organization.ts'
import type { Quantities } from '../ledger/domain/money.ts'
import type { UsageSource } from '../ledger/domain/usage.ts'
import type { Hold } from '../ledger/domain/wallet.ts'
import { checkpointHold } from '../ledger/holds/checkpoint-hold.ts'
import { dispatchHold } from '../ledger/holds/dispatch-hold.ts'
import { endHoldsOf } from '../ledger/holds/end-holds-of.ts'
import { type PlaceHoldInput, type PlaceRunHoldInput, placeHold, placeRunHold } from '../ledger/holds/place-hold.ts'
import { settleHold } from '../ledger/holds/settle-hold.ts'
import { voidHold } from '../ledger/holds/void-hold.ts'
import { type Credit, creditWallet } from '../ledger/use-cases/credit-wallet.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

type Context = ResolverContext<BillingDeps>
type Id = { readonly id: string }
type Input<T> = { readonly input: T }
type HoldQuantities = Input<Id & { readonly quantities: Quantities }>

function answer(id: string, { state, amount }: Hold) {
  return { id, state, amount: BigInt(amount) }
}

export const Mutation = {
  createApiKey(_parent: unknown, { input }: Input<CreateApiKeyInput>, { deps, caller }: Context) {
    return createApiKey(deps, requirePrincipal(caller), input)
  },

  async updateApiKey(_parent: unknown, { input }: Input<UpdateApiKeyInput>, { deps, caller }: Context) {
    return { apiKey: await updateApiKey(deps, requirePrincipal(caller), input) }
  },

  rotateApiKey(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return rotateApiKey(deps, requirePrincipal(caller), id)
  },

  async revokeApiKey(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return { apiKey: await revokeApiKey(deps, requirePrincipal(caller), id) }
  },

  async updateOrganization(_parent: unknown, { input }: Input<Parameters<typeof updateOrganization>[2]>, { deps, caller }: Context) {
    return { organization: await updateOrganization(deps, requirePrincipal(caller), input) }
  },

  createOrganization(_parent: unknown, { input }: Input<CreateOrganizationInput>, { deps, caller }: Context) {
    return createOrganization(deps, requirePrincipal(caller), input)
  },

  async assignPlan(
    _parent: unknown,
    { input }: Input<{ readonly organizationId: string; readonly plan: string }>,
    { deps, caller }: Context,
  ) {
    return { organization: await assignPlan(deps, requirePrincipal(caller), input.organizationId, input.plan) }
  },

  topUpWallet(_parent: unknown, { input }: Input<Omit<Credit, 'kind'>>, { deps, caller }: Context) {
    requireScope(caller, 'operator')
    return creditWallet(deps, { ...input, kind: 'top_up' })
  },

  adjustWallet(_parent: unknown, { input }: Input<Omit<Credit, 'kind'>>, { deps, caller }: Context) {
    requireScope(caller, 'operator')
    return creditWallet(deps, { ...input, kind: 'adjustment' })
  },

  async placeHold(_parent: unknown, { input }: Input<PlaceHoldInput>, { deps, caller }: Context) {
    return answer(input.id, await placeHold(deps, requirePrincipal(caller), input))
  },

  async placeRunHold(_parent: unknown, { input }: Input<PlaceRunHoldInput>, { deps, caller }: Context) {
    return answer(input.id, await placeRunHold(deps, requirePrincipal(caller), input))
  },

  async dispatchHold(_parent: unknown, { input }: HoldQuantities, { deps, caller }: Context) {
    return answer(input.id, await dispatchHold(deps, requirePrincipal(caller), input.id, input.quantities))
  },

  async checkpointHold(
    _parent: unknown,
    { input }: Input<HoldQuantities['input'] & { readonly ttlSeconds: number }>,
    { deps, caller }: Context,
  ) {
    return answer(input.id, await checkpointHold(deps, requirePrincipal(caller), input.id, input.quantities, input.ttlSeconds))
  },

  settleHold(
    _parent: unknown,
    { input }: Input<Id & { readonly quantities: Quantities; readonly source: UsageSource }>,
    { deps, caller }: Context,
  ) {
    return settleHold(deps, requirePrincipal(caller), input.id, input.quantities, input.source)
  },

  voidHold(_parent: unknown, { id }: Id, { deps, caller }: Context) {
    return voidHold(deps, requirePrincipal(caller), id)
  },

  endHoldsOf(_parent: unknown, { holder }: { readonly holder: string }, { deps, caller }: Context) {
    requireService(caller)
    return endHoldsOf(deps, holder)
  },
}
