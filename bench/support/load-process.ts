import { Pool } from 'undici'

/** Sends requests, at a given concurrency or rate, and reports the results. */

export interface Target {
  /** The URL of the chat completions, or of GraphQL. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Load {
  readonly targets: readonly Target[]
  readonly body: string
  readonly durationMs: number
  /**
   * `atOnce`: this many concurrent requests, at one target after the other. `perSecond`: this many start at each
   * target, however long they take.
   */
  readonly pace: { readonly atOnce: number } | { readonly perSecond: number }
}

export interface Outcome {
  readonly requests: number
  readonly seconds: number
  /** Time to the first byte of the body in ms, by target and request. */
  readonly firstByteMs: readonly (readonly number[])[]
}

/** Sockets to a server. A paced load has far fewer running requests. */
const CONNECTIONS = 256

type Send = () => Promise<number>

/**
 * Returns a function that sends a request, and resolves at its end with the time to its first byte.
 * @throws {Error} the response is not the expected one
 */
function sender({ url, headers: own }: Target, body: string, poolOf: (origin: string) => Pool): Send {
  const { origin, pathname } = new URL(url)
  const pool = poolOf(origin)
  const headers = { ...own, 'content-type': 'application/json' }
  const end = JSON.parse(body).stream ? 'data: [DONE]' : '}'
  return async () => {
    const start = performance.now()
    let firstByteMs = 0
    let last = Buffer.alloc(0)
    const response = await pool.request({ method: 'POST', path: pathname, headers, body })
    for await (const piece of response.body) {
      firstByteMs ||= performance.now() - start
      last = piece
    }
    if (response.statusCode !== 200 || !last.toString().trimEnd().endsWith(end)) throw new Error(`${response.statusCode}: ${last}`)
    return firstByteMs
  }
}

async function run({ targets, body, durationMs, pace }: Load): Promise<Outcome> {
  const pools = new Map<string, Pool>()
  const poolOf = (origin: string) => {
    const pool = pools.get(origin) ?? new Pool(origin, { connections: CONNECTIONS })
    pools.set(origin, pool)
    return pool
  }
  const senders = targets.map((target) => sender(target, body, poolOf))
  const firstByteMs = targets.map((): number[] => [])
  const start = performance.now()
  const send = async (target: number) => {
    firstByteMs[target]!.push(await senders[target]!())
  }
  if ('atOnce' in pace) {
    let next = 0
    const worker = async () => {
      while (performance.now() - start < durationMs) await send(next++ % targets.length)
    }
    await Promise.all(Array.from({ length: pace.atOnce }, worker))
  } else {
    const underWay: Promise<void>[] = []
    // Targets alternate, so that other load on the machine affects all alike.
    const everyMs = 1_000 / pace.perSecond / targets.length
    for (let i = 0; i * everyMs < durationMs; i++) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, start + i * everyMs - performance.now())))
      underWay.push(send(i % targets.length))
    }
    await Promise.all(underWay)
  }
  return { requests: firstByteMs.flat().length, seconds: (performance.now() - start) / 1_000, firstByteMs }
}

process.on('message', async (load: Load) => process.send!(await run(load)))
process.on('disconnect', () => process.exit())
