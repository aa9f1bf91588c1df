import { expect, it } from 'vitest'
import type { Link } from '../../common/link/link.ts'
import { ownedNodesOver } from './owned-nodes-link.ts'

const context = { requestId: 'req_1', caller: null, signal: new AbortController().signal }

/** A link with the same result for every operation. */
function answering(result: object) {
  const operations: unknown[] = []
  const link = {
    execute: async (operation: unknown) => {
      operations.push(operation)
      return result
    },
  } as unknown as Link
  return { operations, link }
}

const has = (link: Link, ...ids: readonly string[]) => {
  const nodes = ownedNodesOver({ billing: link, knowledge: link }, context)
  return Promise.allSettled(ids.map((id) => nodes.has('knowledge', { type: 'Document', id })))
}
const error = (path?: readonly unknown[]) => ({ message: 'No.', ...(path && { path }), extensions: { code: 'SERVICE_UNAVAILABLE' } })

it('resolves all objects in one request, and one failure leaves the others intact', async () => {
  const { operations, link } = answering({ data: { _entities: [{}, null, null] }, errors: [error(['_entities', 2])] })
  expect(await has(link, 'doc_1', 'doc_2', 'chunk_3')).toEqual([
    { status: 'fulfilled', value: true },
    { status: 'fulfilled', value: false },
    { status: 'rejected', reason: expect.objectContaining({ code: 'service_unavailable' }) },
  ])
  expect(operations).toHaveLength(1)
})

it('fails for all objects when the owner fails', async () => {
  for (const result of [{ errors: [error()] }, { data: null }, { data: null, errors: [error(['_entities'])] }]) {
    const found = await has(answering(result).link, 'doc_1', 'doc_2')
    for (const each of found) expect(each).toMatchObject({ status: 'rejected', reason: { code: 'service_unavailable' } })
  }
})
