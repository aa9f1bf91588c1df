import { setTimeout as sleep } from 'node:timers/promises'
import type { Subject } from '../peers.ts'
import type { Child } from './child.ts'
import type { Load, Outcome, Target } from './load-process.ts'
import { cpuMsOfTree } from './process-tree.ts'

const AT_ONCE = 8
/** Times of the rounds. A JavaScript engine compiles its hot code only after thousands of requests. */
const ROUNDS = { warmUpMs: 8_000, roundMs: 4_000, rounds: 2 }
/** Writes after the response, mainly ledger entries, are part of the cost. */
const AFTER_MS = 500

export interface Case {
  readonly subject: Subject
  /** Other processes whose CPU counts, too. */
  readonly helpers?: readonly number[]
  readonly body: string
  /** Concurrent requests. Default: 8. */
  readonly atOnce?: number
  /** Headers of several callers, used in round robin instead of the subject's own. */
  readonly callers?: readonly Target['headers'][]
}

/** The cost of one request. */
export interface Cost {
  readonly cpuMs: number
  readonly perSecond: number
}

/** Puts the same load on each case in round robin, after all are warm. */
export async function compared(load: Child, cases: readonly Case[], { warmUpMs, roundMs, rounds } = ROUNDS): Promise<readonly Cost[]> {
  const round = ({ subject: { url, headers }, body, atOnce = AT_ONCE, callers = [headers] }: Case, durationMs: number) =>
    load.request<Outcome>({ targets: callers.map((own) => ({ url, headers: own })), body, durationMs, pace: { atOnce } } satisfies Load)
  if (warmUpMs > 0) for (const each of cases) await round(each, warmUpMs)
  const sums = cases.map(() => ({ cpuMs: 0, requests: 0, seconds: 0 }))
  for (let i = 0; i < rounds; i++) {
    for (const [at, each] of cases.entries()) {
      await sleep(AFTER_MS)
      const before = cpuMsOf(each)
      const { requests, seconds } = await round(each, roundMs)
      await sleep(AFTER_MS)
      const sum = sums[at]!
      sum.cpuMs += cpuMsOf(each) - before
      sum.requests += requests
      sum.seconds += seconds
    }
  }
  return sums.map(({ cpuMs, requests, seconds }) => ({ cpuMs: cpuMs / requests, perSecond: requests / seconds }))
}

function cpuMsOf({ subject: { pid }, helpers = [] }: Case): number {
  return [pid, ...helpers].reduce((sum, each) => sum + cpuMsOfTree(each), 0)
}
