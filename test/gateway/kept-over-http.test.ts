import { describe, expect, it } from 'vitest'
import { MEDIA_TYPES } from '../../gateway/kept-over-http.ts'
import { KEY, startGateway } from './support/start.ts'

/** Headers that differ between two requests. */
const OWN = ['x-request-id', 'date']

async function answersOf(accept: string | undefined, bodies: readonly object[]) {
  const { url } = await startGateway()
  const ask = async (body: object) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...(accept !== undefined && { accept }) }
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    return {
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => !OWN.includes(name))),
      text: await response.text(),
    }
  }
  const answers: Awaited<ReturnType<typeof ask>>[] = []
  for (const body of bodies) answers.push(await ask(body))
  return answers
}

describe('an operation whose document is kept is answered as by Apollo Server', () => {
  // A document is kept when it has run, so the first answer is Apollo Server's.
  for (const accept of MEDIA_TYPES.keys())
    it(`to a client that accepts ${accept ?? 'it does not say what'}`, async () => {
      // `fetch` sends */* by itself.
      const body = { query: '{ ping documents { id title } }', variables: null, operationName: null }
      const [first, second] = await answersOf(accept, [body, body])
      expect(second).toEqual(first)
      expect(first).toMatchObject({ status: 200, headers: { 'content-type': MEDIA_TYPES.get(accept ?? '*/*') } })
    })

  const QUERY = 'query Find($input: FindInput!, $boom: Boolean = false) { find(input: $input) documents @include(if: $boom) { boom } }'
  const kept = { query: QUERY, variables: { input: { query: 'x' } } }
  for (const [name, body] of Object.entries({
    'variables that do not fit': { query: QUERY, variables: { input: { query: 1, limit: 'no' } } },
    'variables that are missing': { query: QUERY },
    'an error of a subgraph': { query: QUERY, variables: { input: { query: 'x' }, boom: true } },
    'a name that is not there': { query: QUERY, operationName: 'Other' },
  }))
    it(`also with ${name}`, async () => {
      const [unkept] = await answersOf('application/json', [body])
      const [, again] = await answersOf('application/json', [kept, body])
      expect(again).toEqual(unkept)
    })

  it('also with an empty name, where the operation has none', async () => {
    const query = '{ ping }'
    const body = { query, operationName: '' }
    const [unkept] = await answersOf('application/json', [body])
    const [, again] = await answersOf('application/json', [{ query }, body])
    expect(unkept).toMatchObject({ status: 400 })
    expect(again).toEqual(unkept)
  })
})
