import { billingOperation, knowledgeOperation } from '../../../schema/operations.ts'
import { BatchedReads } from '../../common/link/batched-reads.ts'
import { type Link, type LinkContext, request } from '../../common/link/link.ts'
import type { NodeReference, OwnedNodes, Owner } from '../ports/owned-nodes.ts'

const FIND_IN_BILLING = billingOperation(
  'query FindNodes($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }',
)
const FIND_IN_KNOWLEDGE = knowledgeOperation(
  'query FindNodes($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }',
)

/** Asks each owner at most once for all objects that the fields of an operation look for at the same time. */
export function ownedNodesOver(links: Readonly<Record<Owner, Link>>, context: LinkContext): OwnedNodes {
  const reads: Readonly<Record<Owner, BatchedReads<true>>> = {
    billing: new BatchedReads(async (keys) => {
      const operation = { query: FIND_IN_BILLING, variables: { representations: keys.map(toRepresentation) } }
      return foundOf(keys, (await request(links.billing, operation, context))._entities)
    }),
    knowledge: new BatchedReads(async (keys) => {
      const operation = { query: FIND_IN_KNOWLEDGE, variables: { representations: keys.map(toRepresentation) } }
      return foundOf(keys, (await request(links.knowledge, operation, context))._entities)
    }),
  }
  return { has: async (owner, reference) => (await reads[owner].find(toKey(reference))) ?? false }
}

function foundOf(keys: readonly string[], entities: readonly unknown[]) {
  return new Map(keys.flatMap((key, i) => (entities[i] ? [[key, true] as const] : [])))
}

const toKey = ({ type, id }: NodeReference) => `${type} ${id}`

function toRepresentation(key: string) {
  const space = key.indexOf(' ')
  return { __typename: key.slice(0, space), id: key.slice(space + 1) }
}
