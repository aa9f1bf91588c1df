import { type Link, request } from '../../common/link.ts'
import type { Principal } from '../../common/principal.ts'
import { parseUsd } from '../../common/usd.ts'
import type { BillingContext } from '../ports/billing.ts'
import type { CollectionDescription, Knowledge, Passage } from '../ports/knowledge.ts'

const DESCRIBE = 'query ($id: ID!) { collection(id: $id) { id code name description documentCount chunkCount } }'
const SEARCH = `query ($input: SearchInput!, $runHoldId: ID) {
  searchCollection(input: $input, runHoldId: $runHoldId) {
    cost
    hits { score chunk { id text headingPath pageStart pageEnd charStart charEnd document { id } file { id name } } }
  }
}`

interface Hit {
  readonly score: number
  readonly chunk: Pick<Passage, 'text' | 'headingPath' | 'pageStart' | 'pageEnd' | 'charStart' | 'charEnd'> & {
    readonly id: string
    readonly document: { readonly id: string }
    readonly file: { readonly id: string; readonly name: string }
  }
}

/** Knowledge behind a link. An agent reads its collections for whoever may run it. */
export function knowledgeOver(link: Link): Knowledge {
  const ask = <Data>(query: string, variables: Readonly<Record<string, unknown>>, context: BillingContext) =>
    request<Data>(link, { query, variables }, { ...context, caller: reader(context.caller) })

  return {
    async describe(collectionIds, context) {
      const found = await Promise.all(
        collectionIds.map((id) => ask<{ collection: CollectionDescription | null }>(DESCRIBE, { id }, context)),
      )
      return found.flatMap(({ collection }) => collection ?? [])
    },

    async search({ collectionId, query, limit, filter }, context) {
      const variables = { input: { collectionId, query, limit, filter }, runHoldId: context.runHoldId }
      const { searchCollection } = await ask<{ searchCollection: { cost: string; hits: readonly Hit[] } }>(SEARCH, variables, context)
      const passages = searchCollection.hits.map(({ score, chunk: { id, document, file, ...place } }): Passage => {
        return { chunkId: id, collectionId, documentId: document.id, fileId: file.id, fileName: file.name, ...place, score }
      })
      return { passages, cost: parseUsd(searchCollection.cost) }
    },
  }
}

function reader(caller: Principal): Principal {
  return { ...caller, scopes: [...new Set([...caller.scopes, 'knowledge:read' as const])] }
}
