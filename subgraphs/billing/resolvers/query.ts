import { verifyFiles } from '../../common/documents/verify-files.ts'
import { requirePrincipal, requireScope, requireService } from '../../common/identity/principal.ts'
import { partHealth } from '../../common/server/health.ts'
import { findApiKey, findNamedKey } from '../accounts/use-cases/api-keys.ts'
import { listErasuresToDo } from '../accounts/use-cases/erasures/erase-organization.ts'
import { findErasure } from '../accounts/use-cases/erasures/erasures.ts'
import { principalOfApiKey, principalOfKey } from '../accounts/use-cases/find-principal.ts'
import { getOrganization, listOrganizations } from '../accounts/use-cases/organizations.ts'
import { quoteHolds } from '../ledger/holds/quote-holds.ts'
import { listUsage } from '../ledger/use-cases/read-ledger.ts'
import { summarizeUsage } from '../ledger/use-cases/summarize-usage.ts'
import { verifyLedger } from '../ledger/use-cases/verify-ledger.ts'
import { findOwnSession, listSessions } from '../sessions/use-cases/manage-sessions.ts'
import { principalOfSession } from '../sessions/use-cases/use-session.ts'
import type { QueryResolvers } from './generated.ts'
import { requireEraser } from './mutation.ts'

export const Query: QueryResolvers = {
  viewer(_parent, _args, { keys, caller }) {
    const principal = requirePrincipal(caller)
    return findNamedKey(keys, principal, principal.apiKeyId)
  },

  viewerSession(_parent, _args, { deps, caller }) {
    return findOwnSession(deps, requirePrincipal(caller))
  },

  sessions(_parent, page, { deps, caller }) {
    return listSessions(deps, requirePrincipal(caller), page)
  },

  organization(_parent, { id }, { deps, caller }) {
    const principal = requirePrincipal(caller)
    return getOrganization(deps, principal, id ?? principal.organizationId)
  },

  organizations(_parent, { filter, ...page }, { deps, caller }) {
    return listOrganizations(deps, requirePrincipal(caller), page, filter ?? {})
  },

  apiKey(_parent, { id }, { deps, caller }) {
    return findApiKey(deps, requirePrincipal(caller), id)
  },

  erasure(_parent, { id }, { deps, caller }) {
    return findErasure(deps, requirePrincipal(caller), id)
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

  billingHealth: (_parent, _args, { problems, caller }) => partHealth(problems, caller),

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

  principalOfSession(_parent, { token }, { deps, caller }) {
    requireService(caller)
    return principalOfSession(deps, token)
  },

  erasuresToDo(_parent, _args, { deps, caller }) {
    return listErasuresToDo(deps, requireEraser(caller))
  },

  installationId(_parent, _args, { deps, caller }) {
    requireService(caller)
    return deps.installationId()
  },

  principalOfKey(_parent, args, { deps, caller }) {
    requireService(caller)
    return principalOfKey(deps, args.organizationId ?? null, args.apiKeyId)
  },
}
