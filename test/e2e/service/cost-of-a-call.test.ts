import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Child } from '../../../bench/support/child.ts'
import { type Case, compared } from '../../../bench/support/compared.ts'
import { schedulingOf } from '../../../bench/support/process-tree.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/**
 * The CPU of a call with full billing, as a multiple of that of a proxy in Node that does nothing else
 * (`bench/support/bare-proxy-process.ts`). Each run prints it: lower a number when calls have become cheaper. Machines
 * differ by a quarter, because ours is code and memory where the proxy is system calls: these are of the machine that
 * shows most.
 */
const RECORDED = { unary: 29, stream: 13.5, paced: 8 }
const LARGEST_RISE = 1.25
const WARM_UP = { warmUpMs: 4_000, roundMs: 500, rounds: 1 }
const ROUND = { warmUpMs: 0, roundMs: 1_500, rounds: 1 }
/** The least ratio counts, because other work only ever adds to ours. So the first one that is low enough ends the rounds. */
const MOST_ROUNDS = 8
/**
 * A round counts if the service waited for a core no longer than it ran. Otherwise other work empties its caches and
 * makes the same instructions up to four times as dear, and those of the small proxy hardly.
 */
const MOST_WAITING = 1

const BODIES = {
  unary: { stream: false, content: 'Hello' },
  stream: { stream: true, content: 'Hello' },
  paced: { stream: true, content: 'paced' },
} as const

describe('CPU of a call compared with a bare proxy in the same run', () => {
  const engine = new Child('./engine-process.ts')
  const load = new Child('./load-process.ts')
  let proxy: Child
  let proxyUrl: string
  let service: Service
  beforeAll(async () => {
    const engineUrl = await engine.nextMessage<string>()
    proxy = new Child('./bare-proxy-process.ts', [engineUrl])
    proxyUrl = await proxy.nextMessage<string>()
    service = await startEmbedded({ catalog: mockCatalog(engineUrl) })
  })
  afterAll(async () => {
    await service?.close()
    for (const child of [proxy, load, engine]) await child?.[Symbol.asyncDispose]()
  })

  /** Null: the machine was too busy. */
  async function measureRatio(cases: readonly [Case, Case]): Promise<number | null> {
    const { pid } = cases[0].subject
    const before = schedulingOf(pid)
    const [ours, bare] = await compared(load, cases, ROUND)
    const after = schedulingOf(pid)
    const isFair = after.waitedMs - before.waitedMs <= MOST_WAITING * (after.ranMs - before.ranMs)
    return isFair ? ours!.cpuMs / bare!.cpuMs : null
  }

  it.each(['unary', 'stream', 'paced'] as const)(
    'has not risen by a quarter: %s',
    async (kind) => {
      const { stream, content } = BODIES[kind]
      const body = JSON.stringify({ model: 'mock-chat', stream, messages: [{ role: 'user', content }] })
      const ours = {
        name: 'ours',
        url: `${service.rest}/v1/chat/completions`,
        headers: { authorization: `Bearer ${service.key}` },
        pid: service.processes.get('all')!.pid,
      }
      const bare = { name: 'bare proxy', url: `${proxyUrl}/chat/completions`, headers: {}, pid: proxy.pid }
      const cases = [
        { subject: ours, body },
        { subject: bare, body },
      ] as const
      await compared(load, cases, WARM_UP)
      const most = RECORDED[kind] * LARGEST_RISE
      let least = Number.POSITIVE_INFINITY
      for (let round = 0; least > most && round < MOST_ROUNDS; round++) least = Math.min(least, (await measureRatio(cases)) ?? least)
      if (least === Number.POSITIVE_INFINITY) return console.log(`${kind}: the machine is too busy to tell`)
      console.log(`${kind}: ${least.toFixed(1)} × a bare proxy`)
      expect(least).toBeLessThanOrEqual(most)
    },
    120_000,
  )
})
