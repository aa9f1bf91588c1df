import { describe, expect, it } from 'vitest'
import type { Failure } from '../../../data/failure.ts'
import type { Rules } from './formats.ts'
import { isOver, PIECE_BYTES, type Transport, UploadQueue } from './uploads.ts'

const RULES: Rules = { maxFileBytes: 10 * PIECE_BYTES, roomBytes: null, readsImages: false, readsAudio: false }
const failure = (code: Failure['code'], shouldRetry = false): Failure => ({
  code,
  message: '',
  param: null,
  shouldRetry,
  retryAfterMs: null,
})
const file = (name: string, size = 10) => new File(['a'.repeat(size)], name)

/** A service that stores the uploads. Its calls throw the `faults` one after the other. */
class Service implements Transport {
  readonly received = new Map<string, number>()
  readonly attached: string[] = []
  readonly cancelled: string[] = []
  readonly faults: Partial<Record<keyof Transport, (Failure | null)[]>> = {}
  known = new Set<string>()
  atOnce = 0
  most = 0

  async create(name: string) {
    this.#fail('create')
    this.received.set(`up:${name}`, 0)
    return `up:${name}`
  }
  async append(id: string, offset: number, piece: Blob) {
    this.most = Math.max(this.most, ++this.atOnce)
    await new Promise((resolve) => setTimeout(resolve, 1))
    this.atOnce--
    if (this.received.get(id) !== offset) throw failure('in_use')
    this.received.set(id, offset + piece.size)
    this.#fail('append')
    return offset + piece.size
  }
  async offset(id: string) {
    return this.received.get(id) ?? null
  }
  async complete(id: string) {
    this.#fail('complete')
    return id.replace('up:', 'file:')
  }
  async cancel(id: string) {
    this.cancelled.push(id)
  }
  async attach(fileId: string) {
    this.#fail('attach')
    this.attached.push(fileId)
    return { documentId: fileId.replace('file:', 'doc:'), isNew: !this.known.has(fileId) }
  }
  #fail(call: keyof Transport) {
    const fault = this.faults[call]?.shift()
    if (fault) throw fault
  }
}

async function sent(queue: UploadQueue): Promise<void> {
  if (queue.items().every(isOver)) return
  await new Promise<void>((resolve) => {
    const unwatch = queue.watch(() => {
      if (!queue.items().every(isOver)) return
      unwatch()
      resolve()
    })
  })
}

const states = (queue: UploadQueue) => queue.items().map(({ name, state }) => `${name} ${state}`)

function createQueue(service = new Service()) {
  return { service, queue: new UploadQueue(service, async () => {}) }
}

describe('Upload queue', () => {
  it('sends each file in parts, at most three concurrently, and attaches it', async () => {
    const { service, queue } = createQueue()
    await queue.add([file('a.txt', 2.5 * PIECE_BYTES), ...['b', 'c', 'd', 'e'].map((name) => file(`${name}.txt`, PIECE_BYTES * 2))], RULES)
    await sent(queue)
    expect(queue.items().map(({ state }) => state)).toEqual(Array(5).fill('attached'))
    expect(service.received.get('up:a.txt')).toBe(2.5 * PIECE_BYTES)
    expect(service.most).toBeLessThanOrEqual(3)
    expect(queue.items()[0]).toMatchObject({ documentId: 'doc:a.txt', sentBytes: 2.5 * PIECE_BYTES })
  })

  it('names refused files, and sends the others', async () => {
    const { service, queue } = createQueue()
    await queue.add(
      [file('empty.txt', 0), file('large.txt', 10 * PIECE_BYTES + 1), new File(['MZ\0\0'], 'setup.exe'), file('good.txt')],
      RULES,
    )
    await sent(queue)
    expect(queue.items().map(({ refusal }) => refusal)).toEqual(['empty', 'tooLarge', 'unsupported', null])
    expect([...service.received.keys()]).toEqual(['up:good.txt'])
  })

  it('sends nothing before it knows the limits', async () => {
    const { service, queue } = createQueue()
    const rules = Promise.withResolvers<Rules>()
    const added = queue.add([file('large.txt', 30), file('good.txt')], rules.promise)
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(states(queue)).toEqual(['large.txt checking', 'good.txt checking'])
    rules.resolve({ ...RULES, maxFileBytes: 20 })
    await added
    await sent(queue)
    expect(states(queue)).toEqual(['large.txt refused', 'good.txt attached'])
    expect([...service.received.keys()]).toEqual(['up:good.txt'])
  })

  it('assigns the remaining quota to the first files', async () => {
    const { queue } = createQueue()
    await queue.add([file('a', 60), file('b', 60), file('c', 30)], { ...RULES, roomBytes: 100 })
    await sent(queue)
    expect(states(queue)).toEqual(['a attached', 'b refused', 'c attached'])
  })

  it('resumes at the offset of the service when a response is lost', async () => {
    const { service, queue } = createQueue()
    service.faults.append = [null, failure('unreachable', true)]
    await queue.add([file('a.txt', 3 * PIECE_BYTES)], RULES)
    await sent(queue)
    expect(states(queue)).toEqual(['a.txt attached'])
    expect(service.received.get('up:a.txt')).toBe(3 * PIECE_BYTES)
  })

  it('stops after some attempts, and resumes on request', async () => {
    const { service, queue } = createQueue()
    service.faults.complete = Array(6).fill(failure('service_unavailable', true))
    await queue.add([file('a.txt')], RULES)
    await sent(queue)
    expect(queue.items()[0]).toMatchObject({ state: 'failed', failure: { code: 'service_unavailable' } })
    queue.retry(queue.items()[0]!.key)
    await sent(queue)
    expect(states(queue)).toEqual(['a.txt attached'])
  })

  it('does not retry permanent errors', async () => {
    const { service, queue } = createQueue()
    service.faults.complete = [failure('unsupported_file_type')]
    await queue.add([file('a.txt')], RULES)
    await sent(queue)
    expect(queue.items()[0]).toMatchObject({ state: 'failed', failure: { code: 'unsupported_file_type' } })
    expect(service.attached).toEqual([])
  })

  it('reports that the collection has a file already', async () => {
    const { service, queue } = createQueue()
    service.known = new Set(['file:a.txt'])
    await queue.add([file('a.txt')], RULES)
    await sent(queue)
    expect(states(queue)).toEqual(['a.txt unchanged'])
  })

  it('cancels an upload, and removes finished ones', async () => {
    const { service, queue } = createQueue()
    await queue.add([file('a.txt', 3 * PIECE_BYTES), file('b.txt')], RULES)
    queue.cancel(queue.items()[0]!.key)
    await sent(queue)
    expect(states(queue)).toEqual(['a.txt cancelled', 'b.txt attached'])
    expect(service.attached).toEqual(['file:b.txt'])
    queue.clear()
    expect(queue.items()).toEqual([])
  })
})
