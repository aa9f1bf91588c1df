import { expect, it } from 'vitest'
import { Documents } from '../../gateway/documents.ts'
import { Federation } from '../../gateway/federation/federation.ts'
import { createMask } from '../../gateway/mask.ts'
import { Operations } from '../../gateway/operations.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { shop } from './support/shop.ts'
import { CONFIG, createPrincipal, KEY, OTHER_KEY } from './support/start.ts'

async function parts() {
  const { supergraphSdl, links } = shop()
  const federation = await Federation.open(supergraphSdl, links)
  const documents = new Documents(federation, true)
  const operations = new Operations(
    documents,
    federation,
    createMask(silentLog),
    { watch: () => () => undefined },
    { evictAfterChange: () => undefined },
    CONFIG,
  )
  const prepared = (query: string) => {
    const operation = operations.prepare(query, undefined, 'req_1')
    if (!('document' in operation)) throw new Error(operation.errors?.[0]?.message)
    return operation
  }
  const context = (key: string) => ({ caller: createPrincipal(key), requestId: 'req_1', signal: new AbortController().signal })
  return {
    async run(query: string, key = KEY) {
      return operations.execute(prepared(query), {}, context(key))
    },
    async follow(query: string) {
      const events = operations.subscribe(prepared(query), {}, { ...context(KEY), credentials: KEY })
      await events.next()
      await events.return?.()
    },
    isCached: (query: string) => documents.findDocument(prepared(query).hash) !== undefined,
  }
}

it('caches operations that ran without an error, including subscriptions, and no others', async () => {
  const { run, follow, isCached } = await parts()
  const fine = '{ ping }'
  await run(fine)
  expect(isCached(fine)).toBe(true)
  const stream = 'subscription { ticks(count: 1) { n } }'
  await follow(stream)
  expect(isCached(stream)).toBe(true)
  const refused = 'subscription { ticks(count: 1, mode: "refused") { n } }'
  await follow(refused)
  expect(isCached(refused)).toBe(false)
  for (const query of [
    '{ documents { boom } }',
    'query ($input: FindInput!) { find(input: $input) }',
    `{ me { broken } echo(text: "${'x'.repeat(4_000)}") }`,
  ]) {
    expect((await run(query)).errors).toBeDefined()
    expect(isCached(query)).toBe(false)
  }
})

it('lets no key evict what another has run', async () => {
  const { run, isCached } = await parts()
  const popular = '{ ping other: ping }'
  await run(popular, OTHER_KEY)
  // 60 MB of text, more than everything that is kept.
  for (let i = 0; i < 150; i++) await run(`{ echo(text: "${i}${'x'.repeat(200_000)}") }`)
  expect(isCached(popular)).toBe(true)
}, 60_000)
