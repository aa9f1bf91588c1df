import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { localLink } from '../../cli/links/local-link.ts'
import { principalTokens } from '../../cli/links/principal-token.ts'
import { remoteLink } from '../../cli/links/remote-link.ts'
import { serveSubgraph } from '../../cli/links/serve-subgraph.ts'
import type { Caller } from '../../subgraphs/common/identity/principal.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { linkContract, probe, somebody } from './link.ts'

linkContract('function calls', async (log) => {
  const { subgraph, seen } = probe()
  return { link: localLink(subgraph, log), seen, close: async () => undefined }
})

async function served(log = silentLog) {
  const { subgraph, seen } = probe()
  const tokens = principalTokens(randomBytes(32), systemClock)
  const server = await serveSubgraph(subgraph, { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, tokens, log })
  const linkWith = (authorization: (caller: Caller | null) => Promise<string | null>) =>
    remoteLink<Caller | null>({ urls: [server.url], what: 'Inference', authorization, socketKey: (caller) => JSON.stringify(caller) })
  return { server, seen, tokens, linkWith }
}

linkContract('HTTP and graphql-ws', async (log) => {
  const { server, seen, tokens, linkWith } = await served(log)
  const link = linkWith(async (caller) => (caller ? `Bearer ${await tokens.sign(caller, 'inference')}` : null))
  return {
    link,
    seen,
    close: async () => {
      await link[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
})

it('a subgraph serves no caller without a signed principal', async () => {
  const { server, seen, tokens, linkWith } = await served()
  await using link = server
  const context = { caller: somebody, requestId: 'req_1', signal: new AbortController().signal }
  const forged = principalTokens(randomBytes(32), systemClock)
  for (const authorization of [
    null,
    'Bearer nonsense',
    `Bearer ${await forged.sign(somebody, 'inference')}`,
    `Bearer ${await tokens.sign(somebody, 'billing')}`,
  ]) {
    await using unauthenticated = linkWith(async () => authorization)
    const { errors } = await unauthenticated.execute({ query: '{ models { id } }' }, context)
    expect(errors?.[0]?.extensions?.code).toBe('INVALID_API_KEY')
    const first = await unauthenticated
      .subscribe({ query: 'subscription { chatCompletion(input: { request: {} }) { textDelta } }' }, context)
      .next()
    expect(first.value?.errors?.[0]?.extensions?.code).toBe('INVALID_API_KEY')
  }
  expect(seen).toMatchObject({ callers: [], opened: 0 })
  expect(link).toBeDefined()
})

it('an unreachable service is SERVICE_UNAVAILABLE, which may be retried', async () => {
  const link = remoteLink<Caller | null>({
    urls: ['http://127.0.0.1:9'],
    what: 'Inference',
    authorization: async () => null,
    socketKey: () => '',
  })
  const context = { caller: null, requestId: 'req_1', signal: new AbortController().signal }
  await expect(link.execute({ query: '{ models { id } }' }, context)).rejects.toMatchObject({
    code: 'service_unavailable',
    shouldRetry: true,
  })
  const first = await link.subscribe({ query: 'subscription { x }' }, context).next()
  expect(first.value?.errors?.[0]?.extensions?.code).toBe('SERVICE_UNAVAILABLE')
})
