import type { ExecutionResult } from 'graphql'
import { billingOperation, knowledgeOperation } from '../../../schema/operations.ts'
import { BatchedReads } from '../../common/documents/batched-reads.ts'
import { KisError, ServiceUnavailable } from '../../common/errors.ts'
import type { Link, LinkContext } from '../../common/link/link.ts'
import type { NodeReference, OwnedNodes, Owner } from '../ports/owned-nodes.ts'

const FIND: Readonly<Record<Owner, string>> = {
  billing: billingOperation('query FindNodes($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }'),
  knowledge: knowledgeOperation(
    'query FindNodes($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }',
  ),
}

/** Queries each owner at most once for all objects that the fields of an operation look up at the same time. */
export function ownedNodesOver(links: Readonly<Record<Owner, Link>>, context: LinkContext): OwnedNodes {
  const readsOf = (owner: Owner) =>
    new BatchedReads(async (keys) => {
      const variables = { representations: keys.map(toRepresentation) }
      return foundOf(keys, await links[owner].execute({ query: FIND[owner], variables }, context))
    })
  const reads: Readonly<Record<Owner, BatchedReads<true | KisError>>> = { billing: readsOf('billing'), knowledge: readsOf('knowledge') }
  return {
    async has(owner, reference) {
      const found = await reads[owner].find(toKey(reference))
      if (found instanceof KisError) throw found
      return found ?? false
    },
  }
}

/** Returns an error for each object whose lookup failed, so that the others of the batch are still found. */
function foundOf(keys: readonly string[], { data, errors = [] }: ExecutionResult): ReadonlyMap<string, true | KisError> {
  const whole = errors.find(({ path }) => typeof path?.[1] !== 'number')
  if (whole) throw KisError.fromGraphQL(whole)
  const entities = data?._entities as readonly unknown[] | undefined
  if (!entities) throw new ServiceUnavailable('A part of the service')
  const failed = new Map(errors.map((error) => [error.path![1], KisError.fromGraphQL(error)]))
  return new Map(
    keys.flatMap((key, i) => {
      const found = failed.get(i) ?? (entities[i] ? true : null)
      return found === null ? [] : [[key, found] as const]
    }),
  )
}

const toKey = ({ type, id }: NodeReference) => `${type} ${id}`

function toRepresentation(key: string) {
  const space = key.indexOf(' ')
  return { __typename: key.slice(0, space), id: key.slice(space + 1) }
}
