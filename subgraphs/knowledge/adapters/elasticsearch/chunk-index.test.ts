import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type HeldElasticsearch,
  type ReceivedRequest,
  startHeldElasticsearch,
} from '../../../../test/support/engines/held-elasticsearch.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { ChunkIndex, ChunkQuery } from '../../ports/chunk-index.ts'
import { openElasticsearchChunkIndex } from './chunk-index.ts'

const HITS = { took: 1, timed_out: false, _shards: { total: 1, successful: 1, skipped: 0, failed: 0 }, hits: { hits: [] } }
const ABSENT = { status: 404, body: { error: { type: 'index_not_found_exception' }, status: 404 } }

const TIMED_OUT = { ...HITS, timed_out: true }

const query = (collectionId: string): ChunkQuery => ({
  collectionId,
  vector: Float32Array.of(1, 0),
  anchor: null,
  words: [],
  grams: [],
  candidates: 10,
  filter: null,
})

/**
 * `col_a` belongs to `org_a`, and so on. Reads of chunks of `col_a` wait. Searches of `col_c` take as long as they may.
 */
function respond({ method, path, body }: ReceivedRequest) {
  if (path === '/') return { body: { version: { number: '9.1.0' } } }
  if (path === '/kis-collections' && method === 'HEAD') return { body: {} }
  const [, owner] = /^\/kis-collections\/_doc\/col_(\w)$/.exec(path) ?? []
  if (owner) return { body: { found: true, _source: { organization_id: `org_${owner}`, dimensions: 2 } } }
  const isHeld = body.includes('col_a')
  if (path.endsWith('/_msearch')) {
    const found = body.includes('col_c') && body.includes('"timeout":') ? TIMED_OUT : HITS
    return { body: { responses: Array(body.trim().split('\n').length / 2).fill(found) }, isHeld }
  }
  if (path.endsWith('/_search')) return { body: HITS, isHeld: isHeld && path.startsWith('/kis-chunks') }
  return ABSENT
}

const code = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error) => error.code as string,
  )

describe('Elasticsearch reads while the index is slow', () => {
  let server: HeldElasticsearch
  let index: ChunkIndex
  beforeEach(async () => {
    server = await startHeldElasticsearch(respond)
    index = await openElasticsearchChunkIndex({ url: server.url, log: silentLog })
    // A wait ends by its limit only where a test advances the time, even on a busy machine.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(async () => {
    vi.useRealTimers()
    server.release()
    await index[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const { signal } = new AbortController()
  const searches = (count: number) => Array.from({ length: count }, () => code(index.search(query('col_a'), signal)))

  it('of one organization leave slots to others and connections to the service, in a limited queue', async () => {
    const many = searches(300)
    await server.holds(24)
    expect(await index.search(query('col_b'), signal)).toEqual([])
    expect(await index.get('col_b', ['chunk'])).toEqual([])
    expect(await index.tokenEmbeddings('col_b', ['chunk'])).toEqual(new Map())
    await index.ping(signal)
    expect(server.held).toBe(24)
    // A running search still reads its chunks.
    const storedCode = code(index.get('col_a', ['chunk']))
    server.release()
    expect(await storedCode).toBe('answered')
    const codes = await Promise.all(many)
    expect(codes.filter((each) => each === 'service_unavailable')).toHaveLength(300 - 24 - 256)
    expect(codes.filter((each) => each === 'answered')).toHaveLength(24 + 256)
  })

  it('that wait too long in the queue are refused', async () => {
    const many = searches(30)
    await server.holds(24)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await Promise.all(many.slice(24))).toEqual(Array(6).fill('service_unavailable'))
    server.release()
    expect(await Promise.all(many.slice(0, 24))).toEqual(Array(24).fill('answered'))
  })

  it('that exceed the time limit of the index fail, without a partial result', async () => {
    expect(await code(index.search(query('col_c'), signal))).toBe('service_unavailable')
  })

  it('that wait end when their callers disconnect', async () => {
    const many = searches(24)
    await server.holds(24)
    const caller = new AbortController()
    const waiting = expect(index.search(query('col_a'), caller.signal)).rejects.toThrow('left')
    // The wait starts once the organization is known.
    await new Promise((resolve) => setImmediate(resolve))
    caller.abort(new Error('left'))
    await waiting
    server.release()
    expect(await Promise.all(many)).toEqual(Array(24).fill('answered'))
    expect(server.held).toBe(24)
  })
})
