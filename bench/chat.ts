import { setTimeout as sleep } from 'node:timers/promises'
import { testCatalog } from '../test/support/catalog.ts'
import { startEmbedded } from '../test/support/service.ts'
import { Child } from './child.ts'
import { cpuMsOfTree } from './cpu.ts'
import { fsyncTimes } from './fsync.ts'
import type { Load, Outcome, Target } from './load-process.ts'
import { p50AndP99, quantile } from './quantile.ts'
import type { BenchRow } from './row.ts'

const AT_ONCE = 8
/** Streams begun each second at each target while the time to the first byte is taken: about a fifth of a core. */
const PER_SECOND = 50
/** A JavaScript engine takes thousands of requests to compile what is hot. */
const WARM_UP_MS = 8_000
const ROUND_MS = 4_000
const ROUNDS = 2
const FIRST_BYTE_MS = 15_000
/** What is written after an answer has left, ledger entries above all, belongs to its cost. */
const AFTER_MS = 500

interface Subject extends Target {
  readonly pid: number
}

/** Chat through the whole embedded service with full billing, turn by turn with the same load on the engine itself. */
export async function benchChat(): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  const engineUrl = await engine.answer<string>()
  const service = await startEmbedded({ catalog: testCatalog(engineUrl) })
  try {
    const through: Subject = { url: `${service.rest}/v1/chat/completions`, key: service.key, pid: service.processes.get('all')!.pid }
    const direct: Subject = { url: `${engineUrl}/chat/completions`, key: 'none', pid: engine.pid }
    const unary = await compared(load, [through, direct], bodyOf({ stream: false }))
    const stream = await compared(load, [through, direct], bodyOf({ stream: true }))
    const paced = await compared(load, [through, direct], bodyOf({ stream: true, content: 'paced' }))
    const firstByte = await load.ask<Outcome>({
      targets: [through, direct],
      body: bodyOf({ stream: true }),
      durationMs: FIRST_BYTE_MS,
      pace: { perSecond: PER_SECOND },
    } satisfies Load)
    const [ours, theirs] = firstByte.firstByteMs as [number[], number[]]
    const added = (share: number) => (quantile(ours, share) - quantile(theirs, share)).toFixed(1)
    return [
      row('chat, unary', unary, '≤ 1.6 ms'),
      row('chat, stream of 20 chunks at once', stream, '≤ 3 ms'),
      row('chat, stream of 20 chunks, 5 ms apart', paced, '≤ 3 ms'),
      {
        what: `time to first token, ${PER_SECOND} streams a second`,
        figure: `added p50 ${added(0.5)} ms, p99 ${added(0.99)} ms`,
        bar: 'p50 ≤ 3 ms, p99 ≤ 15 ms',
        beside: `engine itself ${p50AndP99(theirs)}; fsync of the disk ${p50AndP99(await fsyncTimes(service.folder))}`,
      },
    ]
  } finally {
    await service.close()
  }
}

function bodyOf({ stream, content = 'Hello' }: { readonly stream: boolean; readonly content?: string }): string {
  return JSON.stringify({ model: 'mock-chat', stream, messages: [{ role: 'user', content }] })
}

interface Cost {
  readonly cpuMs: number
  readonly perSecond: number
}

/** Of each subject, per request, once the first is warm. */
async function compared(load: Child, subjects: readonly Subject[], body: string): Promise<readonly Cost[]> {
  const round = (target: Subject, durationMs: number) =>
    load.ask<Outcome>({ targets: [target], body, durationMs, pace: { atOnce: AT_ONCE } } satisfies Load)
  await round(subjects[0]!, WARM_UP_MS)
  const sums = subjects.map(() => ({ cpuMs: 0, requests: 0, seconds: 0 }))
  for (let i = 0; i < ROUNDS; i++) {
    for (const [at, subject] of subjects.entries()) {
      await sleep(AFTER_MS)
      const before = cpuMsOfTree(subject.pid)
      const { requests, seconds } = await round(subject, ROUND_MS)
      await sleep(AFTER_MS)
      const sum = sums[at]!
      sum.cpuMs += cpuMsOfTree(subject.pid) - before
      sum.requests += requests
      sum.seconds += seconds
    }
  }
  return sums.map(({ cpuMs, requests, seconds }) => ({ cpuMs: cpuMs / requests, perSecond: requests / seconds }))
}

function row(what: string, costs: readonly Cost[], bar: string): BenchRow {
  const [ours, theirs] = costs.map(({ cpuMs, perSecond }) => `${cpuMs.toFixed(2)} ms CPU, ${Math.round(perSecond)} requests/s`)
  return { what, figure: ours!, bar, beside: `engine itself ${theirs}` }
}
