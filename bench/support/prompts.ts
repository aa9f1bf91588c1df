import { testCatalog } from '../../test/support/catalog.ts'
import type { Subject } from '../peers.ts'
import type { BenchRow } from '../row.ts'
import { Child } from './child.ts'
import { compared } from './compared.ts'
import type { Delay, Started } from './event-loop-process.ts'
import type { Load, Outcome } from './load-process.ts'
import { delayText, WatchedService } from './watched-service.ts'
import { seeded, wordSource } from './words.ts'

const SHORT_CHARS = 1_000
const LONG_CHARS = 100_000
/** Prompts per second: so few that no two overlap. */
const PER_SECOND = 5
const ALONE_MS = 10_000

/** Measures what a long prompt costs, and how long it blocks the event loop. */
export async function benchPrompts(): Promise<BenchRow[]> {
  await using engine = new Child('./engine-process.ts')
  await using load = new Child('./load-process.ts')
  const engineUrl = await engine.nextMessage<string>()
  await using service = await WatchedService.start(testCatalog(engineUrl))
  await using idle = new Child('./event-loop-process.ts', ['idle'])
  await idle.nextMessage<Started>()
  const headers = { authorization: `Bearer ${service.caller.key}` }
  const ours: Subject = { name: 'ours', url: `${service.rest}/v1/chat/completions`, headers, pid: service.pid }
  const long = createPrompt(LONG_CHARS)
  const direct: Subject = { name: 'engine itself', url: `${engineUrl}/chat/completions`, headers: {}, pid: engine.pid }
  const [short, hundredfold, engines] = await compared(load, [
    { subject: ours, body: createPrompt(SHORT_CHARS) },
    { subject: ours, body: long },
    { subject: direct, body: long },
  ])
  await Promise.all([service.delay(), idle.request<Delay>({})])
  await load.request<Outcome>({ targets: [ours], body: long, durationMs: ALONE_MS, pace: { perSecond: PER_SECOND } } satisfies Load)
  const [delay, reference] = await Promise.all([service.delay(), idle.request<Delay>({})])
  return [
    {
      what: 'chat, unary, prompt of 100 KB against one of 1 KB',
      figure: `${(hundredfold!.cpuMs / short!.cpuMs).toFixed(1)} × the CPU (${hundredfold!.cpuMs.toFixed(2)} and ${short!.cpuMs.toFixed(2)} ms)`,
      target: '≤ 3 ×',
      beside: `engine itself ${engines!.cpuMs.toFixed(2)} ms for 100 KB`,
    },
    {
      what: `event loop delay, ${PER_SECOND} prompts of 100 KB a second`,
      figure: delayText(delay),
      target: 'longest ≤ 10 ms',
      beside: `an idle process ${delayText(reference)}`,
    },
  ]
}

function createPrompt(chars: number): string {
  const word = wordSource(seeded(1), ['en'])
  let content = ''
  while (content.length < chars) content += `${word()} `
  return JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content }] })
}
