import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { probe, somebody } from '../../test/contract/link.ts'
import { functionsOf } from '../../test/support/running-functions.ts'
import { principalTokens } from './principal-token.ts'
import { serveSubgraph } from './serve-subgraph.ts'

async function start() {
  const tokens = principalTokens(randomBytes(32), systemClock)
  const defects: unknown[] = []
  const log = { ...silentLog, error: (about: unknown) => void defects.push(about) }
  const options = { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, tokens, log }
  const server = await serveSubgraph(probe().subgraph, options)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const authorization = `Bearer ${await tokens.sign(somebody, 'inference')}`
  const post = async (body: unknown) => {
    const headers = { 'content-type': 'application/json', authorization }
    const response = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as { readonly errors: unknown } }
  }
  return { post, defects }
}

it.each([{ variables: 5 }, { operationName: {} }, { variables: [] }])('refuses a body with %j as a request error', async (part) => {
  const { post, defects } = await start()
  const { body } = await post({ query: '{ __typename }', ...part })
  expect(body.errors).toMatchObject([{ extensions: { code: 'INVALID_REQUEST' } }])
  expect(defects).toEqual([])
})

it('responds to an invalid operation like a link within one process, without data', async () => {
  const { post } = await start()
  const { status, body } = await post({ query: '{ noSuchField }' })
  expect(status).toBe(200)
  expect(Object.keys(body)).toEqual(['errors'])
  expect(body.errors).toMatchObject([{ extensions: { code: 'INVALID_REQUEST' } }])
})

it('serves a warm operation through the Mercurius route and through graphql-js', async () => {
  const { post } = await start()
  const run = async () => expect(await post({ query: '{ __typename }' })).toEqual({ status: 200, body: { data: { __typename: 'Query' } } })
  await run()
  expect(await functionsOf('mercurius', run)).toEqual(expect.arrayContaining(['executeQuery', 'fastifyGraphQl']))
  expect(await functionsOf('graphql', run)).toContain('executeOperation')
})
