import { expect, it } from 'vitest'
import type { Link } from '../../subgraphs/common/link/link.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import { nameOperation, observedLink } from './observed-link.ts'

const context = { caller: null, requestId: 'req_1', signal: new AbortController().signal }

function watched(link: Link) {
  const underWay = new Set<string>()
  const startSpan = (name: string) => {
    underWay.add(name)
    return () => underWay.delete(name)
  }
  return { underWay, link: observedLink(link, 'knowledge', 'internal', { watch: { start: startSpan } }) }
}

it('names an operation until it returns or fails', async () => {
  const results = [Promise.resolve({ data: {} }), Promise.reject(new Error('away'))]
  const { underWay, link } = watched({ execute: () => results.shift()! } as unknown as Link)
  for (const outcome of [{ data: {} }, 'away']) {
    const result = link.execute({ query: 'query Search($q: String!) { a }' }, context)
    expect([...underWay]).toEqual(['knowledge: Search'])
    expect(await result.catch((error) => error.message)).toEqual(outcome)
    expect(underWay.size).toBe(0)
  }
})

it('names a subscription until its first event, and passes on every event and the end', async () => {
  const values = [1, 2]
  let ended = false
  const events = endableIterator(
    async () => (values.length > 0 ? { done: false, value: { data: { n: values.shift() } } } : { done: true, value: undefined }),
    () => {
      ended = true
    },
  )
  const { underWay, link } = watched({ subscribe: () => events } as unknown as Link)
  const received = link.subscribe({ query: '', operationName: 'Events' }, context)
  const first = received.next()
  expect([...underWay]).toEqual(['knowledge: Events'])
  expect(await first).toMatchObject({ value: { data: { n: 1 } } })
  expect(underWay.size).toBe(0)
  expect(await received.next()).toMatchObject({ value: { data: { n: 2 } } })
  await received.return!()
  expect([ended, await received.next()]).toEqual([true, { done: true, value: undefined }])
})

it.each([
  [{ query: '{ secret(text: "of a caller") }' }, 'billing: an operation without a name'],
  [{ query: '  mutation PlaceHold { a }' }, 'billing: PlaceHold'],
  [{ query: 'query A { a }', operationName: 'x'.repeat(500) }, `billing: ${'x'.repeat(100)}`],
])('names %j without its details', (operation, name) => {
  expect(nameOperation('billing', operation)).toBe(name)
})
