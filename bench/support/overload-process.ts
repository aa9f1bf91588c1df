import { Pool } from 'undici'

/** Starts chat requests at a fixed rate, however long they take, and reports the response of each. */

export interface OverloadLoad {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Default: POST. */
  readonly method?: 'GET' | 'POST'
  readonly body: string
  readonly durationMs: number
  readonly perSecond: number
  /** Most running requests. More would wait in this process, and its queue is not the subject of the measurement. */
  readonly connections: number
}

export interface OverloadOutcome {
  readonly seconds: number
  /** Requests that were due but could not start, because every connection was waiting for a response. */
  readonly unsent: number
  /** Time to the last byte of the response in ms, by status. Status 0: the connection failed. */
  readonly timesMs: Readonly<Record<number, readonly number[]>>
}

async function run({ url, headers, body, method = 'POST', durationMs, perSecond, connections }: OverloadLoad): Promise<OverloadOutcome> {
  const { origin, pathname } = new URL(url)
  const pool = new Pool(origin, { connections })
  const timesMs: Record<number, number[]> = {}
  let underWay = 0
  let unsent = 0
  const send = async () => {
    const startMs = performance.now()
    let status = 0
    try {
      const response = await pool.request({
        method,
        path: pathname,
        headers: { ...headers, 'content-type': 'application/json' },
        ...(method === 'POST' && { body }),
      })
      await response.body.dump()
      status = response.statusCode
    } catch {
      // A failure counts as status 0.
    }
    timesMs[status] ??= []
    timesMs[status]!.push(performance.now() - startMs)
    underWay--
  }
  // Connect first: a process accepts one connection in each event-loop tick, which is not the subject of the
  // measurement.
  const warm = Array.from({ length: connections }, async () => {
    const { body } = await pool.request({ method: 'GET', path: '/healthz' })
    await body.dump()
  })
  await Promise.all(warm)
  const startMs = performance.now()
  const sent: Promise<void>[] = []
  for (let begun = 0; performance.now() - startMs < durationMs; ) {
    for (const due = ((performance.now() - startMs) / 1_000) * perSecond; begun < due; begun++) {
      if (underWay >= connections) {
        unsent++
        continue
      }
      underWay++
      sent.push(send())
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const seconds = (performance.now() - startMs) / 1_000
  await Promise.all(sent)
  await pool.close()
  return { seconds, unsent, timesMs }
}

process.on('message', async (load: OverloadLoad) => process.send!(await run(load)))
process.on('disconnect', () => process.exit())
