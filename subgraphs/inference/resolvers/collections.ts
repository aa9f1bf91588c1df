import { requireScope } from '../../common/identity/principal.ts'
import { describeCollection } from '../domain/agents/describe-collection.ts'
import { SEARCH_PARAMETERS } from '../domain/agents/search-tools.ts'
import type { CollectionResolvers } from './generated.ts'

/** A collection of knowledge, to which inference adds fields. */
export interface Reference {
  readonly id: string
}

export const CollectionFields: CollectionResolvers = {
  async searchTool({ id }, _args, { deps, ...requestContext }) {
    const caller = requireScope(requestContext.caller, 'knowledge:read')
    const [collection] = await deps.knowledge.describe([id], { ...requestContext, caller })
    return collection ? { description: describeCollection(collection), parameters: SEARCH_PARAMETERS } : null
  },
  __resolveReference: ({ id }) => ({ id }),
}
