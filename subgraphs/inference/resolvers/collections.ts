import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { describeCollection } from '../domain/agents/describe-collection.ts'
import { SEARCH_PARAMETERS } from '../domain/agents/search-tools.ts'
import type { ServedDeps } from '../use-cases/deps.ts'

export const CollectionFields = {
  async searchTool({ id }: { id: string }, _args: unknown, { deps, ...ask }: ResolverContext<ServedDeps>) {
    const caller = requireScope(ask.caller, 'knowledge:read')
    const [collection] = await deps.knowledge.describe([id], { ...ask, caller })
    return collection ? { description: describeCollection(collection), parameters: SEARCH_PARAMETERS } : null
  },
  __resolveReference: ({ id }: { id: string }) => ({ id }),
}
