import { verifyFiles } from '../../common/documents/verify-files.ts'
import { NotFound } from '../../common/errors.ts'
import { requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import { principalOfApiKey, principalOfKey } from '../accounts/use-cases/find-principal.ts'
import { quoteHolds } from '../ledger/holds/quote-holds.ts'
import { listOrganizations, listUsage } from '../ledger/use-cases/list-billing.ts'
import { summarizeUsage } from '../ledger/use-cases/summarize-usage.ts'
import { verifyLedger } from '../ledger/use-cases/verify-ledger.ts'
import type { QueryResolvers } from './generated.ts'

export const Query: QueryResolvers = {
  async organization(_parent, _args, { deps, caller }) {
    const { organizationId } = requirePrincipal(caller)
    const organization = await deps.collections.organizations.findOne({ _id: organizationId })
    if (!organization) throw new NotFound('organization', organizationId)
    return organization
  },

  organizations(_parent, args, { deps, caller }) {
    requireScope(caller, 'operator')
    return listOrganizations(deps, args)
  },

  async apiKey(_parent, { id }, { deps, caller }) {
    const { organizationId } = requireScope(caller, 'admin')
    const key = await deps.collections.apiKeys.findOne({ _id: id })
    return key?.organizationId === organizationId ? key : null
  },

  plans(_parent, _args, { deps, caller }) {
    requireScope(caller, 'operator')
    return deps.plans
  },

  usage(_parent, { filter, ...page }, { deps, caller }) {
    const { organizationId } = requireScope(caller, 'billing:read')
    return listUsage(deps, organizationId, page, filter ?? {})
  },

  verifyLedger(_parent, { after }, { deps, caller }) {
    return verifyLedger(deps, caller, after ?? null)
  },

  verifyBillingFiles(_parent, { after }, { deps, caller }) {
    return verifyFiles(deps.files, caller, after ?? null)
  },

  quoteHolds(_parent, { holds }, { deps, caller }) {
    return quoteHolds(deps, requirePrincipal(caller), holds)
  },

  usageSummary(_parent, { filter, groupBy }, { deps, caller }) {
    const { organizationId } = requireScope(caller, 'billing:read')
    return summarizeUsage(deps, organizationId, { ...filter, groupBy })
  },

  principalOfApiKey(_parent, { apiKey }, { deps, caller }) {
    requireService(caller)
    return principalOfApiKey(deps, apiKey)
  },

  installationId(_parent, _args, { deps, caller }) {
    requireService(caller)
    return deps.installationId()
  },

  principalOfKey(_parent, args, { deps, caller }) {
    requireService(caller)
    return principalOfKey(deps, args.organizationId, args.apiKeyId)
  },
}
