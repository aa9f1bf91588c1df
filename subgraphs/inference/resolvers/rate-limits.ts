import { requirePrincipal } from '../../common/identity/principal.ts'
import { consumeRequest, readRateLimits } from '../use-cases/calls/limited-call.ts'
import type { MutationResolvers, QueryResolvers } from './generated.ts'

export const rateLimitQueries: QueryResolvers = {
  rateLimits(_parent, _args, { deps, caller }) {
    deps.limits.requireNoDebt(requirePrincipal(caller))
    return readRateLimits(deps, { caller })
  },
}

export const rateLimitMutations: MutationResolvers = {
  async countRequest(_parent, { isRefused }, { deps, caller }) {
    if (isRefused) deps.limits.countBody(requirePrincipal(caller))
    else await consumeRequest(deps, { caller })
    return readRateLimits(deps, { caller })
  },
}
