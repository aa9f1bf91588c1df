import { Pool } from 'undici'
import type { Target } from './load-process.ts'

/** Opens long streams, and counts what arrives of each. */

export interface Streams {
  readonly target: Target
  readonly body: string
  readonly count: number
  readonly perSecond: number
}

export interface Arrived {
  /** Streams that ended as expected. */
  readonly whole: number
  /** Chunks with text, of all streams together. */
  readonly chunks: number
  /** The most streams open at once. */
  readonly atOnce: number
  /** How the first failed stream failed; null: none did. */
  readonly failure: string | null
}

const TEXT_DELTA = /"content":\s*"[^"]/g

async function run({ target, body, count, perSecond }: Streams): Promise<Arrived> {
  const { origin, pathname } = new URL(target.url)
  const pool = new Pool(origin, { connections: count })
  const headers = { ...target.headers, 'content-type': 'application/json' }
  const arrived = { whole: 0, chunks: 0, atOnce: 0, failure: null as string | null }
  let open = 0
  const stream = async () => {
    const response = await pool.request({ method: 'POST', path: pathname, headers, body })
    arrived.atOnce = Math.max(arrived.atOnce, ++open)
    try {
      const text = await response.body.text()
      arrived.chunks += text.match(TEXT_DELTA)?.length ?? 0
      if (response.statusCode !== 200 || !text.endsWith('data: [DONE]\n\n')) throw new Error(`${response.statusCode}: ${text.slice(-200)}`)
      arrived.whole++
    } finally {
      open--
    }
  }
  const start = performance.now()
  const underWay: Promise<void>[] = []
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, start + (i * 1_000) / perSecond - performance.now())))
    underWay.push(
      stream().catch((error: Error) => {
        arrived.failure ??= error.message
      }),
    )
  }
  await Promise.all(underWay)
  await pool.close()
  return arrived
}

process.on('message', async (streams: Streams) => process.send!(await run(streams)))
process.on('disconnect', () => process.exit())
