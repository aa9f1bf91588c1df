import { composeServices } from '@apollo/composition'
import type { ExecutionResult } from 'graphql'
import { parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import type { Scope } from '../../subgraphs/common/identity/principal.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import { eventually } from '../support/eventually.ts'
import { handClock } from './support/clock.ts'
import { collect, connect, createPrincipal, KEY, OTHER_KEY, startGateway } from './support/start.ts'

const SDL = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@authenticated", "@requiresScopes"])
  type Query { open: Int }
  type Subscription { chat: Int @requiresScopes(scopes: [["inference"]]) wallet: Int @requiresScopes(scopes: [["billing:read"]]) }`

/** A gateway whose subscriptions give one event and wait, and whose keys can be changed. */
async function start() {
  const { supergraphSdl } = composeServices([{ name: 'inference', url: 'http://inference', typeDefs: parse(SDL) }])
  const ended: string[] = []
  const idle = ({ query }: { query: string }) => {
    const field = query.includes('chat') ? 'chat' : 'wallet'
    let isFirst = true
    return endableIterator<ExecutionResult>(
      async () => {
        if (!isFirst) return new Promise(() => undefined)
        isFirst = false
        return { done: false, value: { data: { [field]: 1 } } }
      },
      () => void ended.push(field),
    )
  }
  const link = { execute: async () => ({ data: {} }), subscribe: idle, openBytes: async () => Promise.reject(new Error('not asked')) }
  const scopes = new Map<string, readonly Scope[]>()
  const clock = handClock()
  const started = await startGateway({
    supergraphSdl: supergraphSdl!,
    links: { billing: link, inference: link, knowledge: link },
    clock,
    authenticate: async (apiKey) => {
      const own = scopes.get(apiKey) ?? ['inference', 'billing:read']
      if (own.length === 0) throw new InvalidApiKey()
      return { ...createPrincipal(apiKey), scopes: own }
    },
  })
  /** As the rest-adapter of the same process subscribes. */
  const follow = (field: string, key = KEY) => {
    const results: ExecutionResult[] = []
    const context = { caller: `Bearer ${key}`, requestId: 'req_1', signal: new AbortController().signal }
    const over = (async () => {
      for await (const result of started.gateway.link.subscribe({ query: `subscription { ${field} }` }, context)) results.push(result)
    })()
    return { results, over }
  }
  const within5s = async (isDone: () => boolean) => {
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(isDone)
  }
  return { ...started, scopes, ended, follow, within5s }
}

const listErrorCodes = (results: readonly ExecutionResult[]) =>
  results.flatMap(({ errors }) => errors?.map(({ extensions }) => extensions.code) ?? [])

describe('Key watch of running operations', () => {
  it('ends those of a revoked key within 5 s, in the process as well, with the reason, and no others', async () => {
    const { scopes, ended, follow, within5s } = await start()
    const [chat, wallet, other] = [follow('chat'), follow('wallet'), follow('chat', OTHER_KEY)]
    await eventually(() => [chat, wallet, other].every(({ results }) => results.length === 1))
    scopes.set(KEY, [])
    await within5s(() => ended.length === 2)
    await Promise.all([chat.over, wallet.over])
    expect([chat, wallet].map(({ results }) => listErrorCodes(results))).toEqual([['INVALID_API_KEY'], ['INVALID_API_KEY']])
    expect(other.results).toEqual([{ data: { chat: 1 } }])
  })

  it('ends those that need a removed scope, and no others', async () => {
    const { scopes, ended, follow, within5s, wsUrl } = await start()
    const [chat, wallet] = [follow('chat'), follow('wallet')]
    const { client } = connect(wsUrl)
    const onSocket = collect(client, 'subscription { chat }')
    await eventually(() => [chat, wallet, onSocket].every(({ results }) => results.length === 1))
    scopes.set(KEY, ['billing:read'])
    await within5s(() => ended.length === 2)
    await Promise.all([chat.over, onSocket.over])
    expect(listErrorCodes(chat.results)).toEqual(['PERMISSION_DENIED'])
    expect(listErrorCodes(onSocket.results)).toEqual(['PERMISSION_DENIED'])
    expect([ended, wallet.results]).toEqual([['chat', 'chat'], [{ data: { wallet: 1 } }]])
  })
})
