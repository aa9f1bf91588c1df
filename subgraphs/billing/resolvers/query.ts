import { verifyFiles } from '../../common/documents/verify-files.ts'
import { NotFound } from '../../common/errors.ts'
import { requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import type { PageArguments } from '../../common/link/connection.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { principalOfApiKey, principalOfKey } from '../accounts/use-cases/find-principal.ts'
import { quoteHolds } from '../ledger/holds/quote-holds.ts'
import { listOrganizations, listUsage, type UsageFilter } from '../ledger/use-cases/list-billing.ts'
import { type SummaryInput, summarizeUsage, type UsageDimension } from '../ledger/use-cases/summarize-usage.ts'
import { verifyLedger } from '../ledger/use-cases/verify-ledger.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

type Context = ResolverContext<BillingDeps>
interface Step {
  readonly after?: string | null
}
interface SummaryArguments {
  readonly groupBy: readonly UsageDimension[]
  readonly filter?: Omit<SummaryInput, 'groupBy'> | null
}

export const Query = {
  async organization(_parent: unknown, _args: object, { deps, caller }: Context) {
    const { organizationId } = requirePrincipal(caller)
    const organization = await deps.collections.organizations.findOne({ _id: organizationId })
    if (!organization) throw new NotFound('organization', organizationId)
    return organization
  },

  organizations(_parent: unknown, args: PageArguments, { deps, caller }: Context) {
    requireScope(caller, 'operator')
    return listOrganizations(deps, args)
  },

  async apiKey(_parent: unknown, { id }: { readonly id: string }, { deps, caller }: Context) {
    const { organizationId } = requireScope(caller, 'admin')
    const key = await deps.collections.apiKeys.findOne({ _id: id })
    return key?.organizationId === organizationId ? key : null
  },

  plans(_parent: unknown, _args: object, { deps, caller }: Context) {
    requireScope(caller, 'operator')
    return deps.plans
  },

  usage(_parent: unknown, { filter, ...page }: PageArguments & { readonly filter?: UsageFilter | null }, { deps, caller }: Context) {
    const { organizationId } = requireScope(caller, 'billing:read')
    return listUsage(deps, organizationId, page, filter ?? {})
  },

  verifyLedger(_parent: unknown, { after }: Step, { deps, caller }: Context) {
    return verifyLedger(deps, caller, after ?? null)
  },

  verifyBillingFiles(_parent: unknown, { after }: Step, { deps, caller }: Context) {
    return verifyFiles(deps.files, caller, after ?? null)
  },

  quoteHolds(_parent: unknown, { holds }: { readonly holds: Parameters<typeof quoteHolds>[2] }, { deps, caller }: Context) {
    return quoteHolds(deps, requirePrincipal(caller), holds)
  },

  usageSummary(_parent: unknown, { filter, groupBy }: SummaryArguments, { deps, caller }: Context) {
    const { organizationId } = requireScope(caller, 'billing:read')
    return summarizeUsage(deps, organizationId, { ...filter, groupBy })
  },

  principalOfApiKey(_parent: unknown, { apiKey }: { readonly apiKey: string }, { deps, caller }: Context) {
    requireService(caller)
    return principalOfApiKey(deps, apiKey)
  },

  installationId(_parent: unknown, _args: object, { deps, caller }: Context) {
    requireService(caller)
    return deps.installationId()
  },

  principalOfKey(_parent: unknown, args: { readonly organizationId: string; readonly apiKeyId: string }, { deps, caller }: Context) {
    requireService(caller)
    return principalOfKey(deps, args.organizationId, args.apiKeyId)
  },
}
