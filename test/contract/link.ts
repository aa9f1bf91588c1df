import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { ExecutionResult } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ByteRange, byteRequest, respondWithBytes } from '../../subgraphs/common/bytes/byte-response.ts'
import { KisError, NotFound, NotHere } from '../../subgraphs/common/errors.ts'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Link, LinkContext } from '../../subgraphs/common/link/link.ts'
import { type ResolverContext, type Subgraph, subgraphSchema } from '../../subgraphs/common/link/subgraph.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import { type Log, silentLog } from '../../subgraphs/common/process/log.ts'
import { eventually } from '../support/eventually.ts'

export const somebody: Principal = {
  organizationId: 'org_a',
  apiKeyId: 'key_a',
  scopes: ['inference'],
  modelAllowlist: null,
  residencyPolicy: 'unrestricted',
  revision: 0,
  ancestors: [],
  rotations: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  plan: { code: 'p', storageBytes: null, vectors: null, maxFileBytes: 1, requestsPerMinute: null, tokensPerMinute: null, concurrency: 1 },
}

const BYTES_PIECE = Buffer.alloc(1024 * 1024, 'abc')
/** More than all buffers on the way hold. */
const BYTES_SIZE = 60 * 1024 * 1024 + 1

/** What the probe subgraph saw. */
export interface Seen {
  callers: unknown[]
  requestIds: string[]
  aborted: number
  opened: number
  piecesRead: number
  ended: number
  /** What was known of the client when a subscription ended. */
  cut: (boolean | undefined)[]
  /** It has the stream of the model `kept`. */
  hasStored: boolean
}

/** A subgraph with the inference SDL whose resolvers are scripted by the model id that is asked for. */
export function probe(): { subgraph: Subgraph; seen: Seen } {
  const seen: Seen = { callers: [], requestIds: [], aborted: 0, opened: 0, piecesRead: 0, ended: 0, cut: [], hasStored: false }
  const subgraph: Subgraph = {
    name: 'inference',
    schema: subgraphSchema('inference', {
      Query: {
        models: () => [{ id: 'first' }, Promise.reject(new KisError('not_found', 'No second.'))],
        async model(_parent: unknown, { id }: { id: string }, { caller, requestId, signal }: ResolverContext<null>) {
          seen.callers.push(caller)
          seen.requestIds.push(requestId)
          if (id === 'refused') throw new KisError('insufficient_quota', 'No money.', { param: 'id' })
          if (id === 'defect') throw new Error('secret detail')
          if (id.startsWith('slow'))
            await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(void seen.aborted++)))
          if (id === 'slow and strict') signal.throwIfAborted()
          return { id, kind: 'chat', vendor: 'probe', residency: 'local', createdAt: new Date(0) }
        },
      },
      Subscription: {
        chatCompletion: {
          subscribe(
            _parent: unknown,
            { input }: { input: { request: { model: string; count: number } } },
            { isCut }: ResolverContext<null>,
          ) {
            const { model, count } = input.request
            seen.opened++
            let produced = 0
            return endableIterator(
              async () => {
                if (model === 'refused') throw new KisError('insufficient_quota', 'No money.')
                if (model === 'kept' && !seen.hasStored) throw new NotHere(new NotFound('stream', 'kept'))
                if (produced === count) {
                  if (model === 'idle') return new Promise<never>(() => undefined)
                  if (model === 'breaks') throw new KisError('engine_error', 'The vendor hung up.')
                  return { done: true, value: undefined }
                }
                produced++
                return { done: false, value: { chatCompletion: { chunks: [{ n: produced, text: 'مرحبا' }], textDelta: String(produced) } } }
              },
              () => {
                seen.ended++
                seen.cut.push(isCut?.())
              },
            )
          },
        },
      },
    }),
    toResolverContext: (context) => ({ deps: null, ...context }),
    async openBytes(request, { requestId, signal }) {
      seen.requestIds.push(requestId)
      const what = new URLSearchParams(request.path.split('?')[1]).get('token')
      if (what === 'refused') throw new KisError('permission_denied', 'Not yours.')
      if (what === 'defect') throw new Error('secret detail')
      async function* read({ offset, length }: ByteRange) {
        try {
          for (let at = offset; at < offset + length; at += BYTES_PIECE.length) {
            if (what === 'breaks' && at > offset) throw new Error('lost')
            seen.piecesRead++
            yield Buffer.from(BYTES_PIECE.subarray(0, offset + length - at))
          }
        } finally {
          seen.ended++
        }
      }
      return respondWithBytes(
        request,
        { organizationId: 'org_a', name: 'a', mediaType: 'text/plain', sizeBytes: BYTES_SIZE, sha256: 'abc', read },
        signal,
      )
    },
    problems: async () => [],
    [Symbol.asyncDispose]: async () => undefined,
  }
  return { subgraph, seen }
}

const MODEL = { query: 'query ($id: ID!) { model(id: $id) { id vendor createdAt } }' }
const STREAM = { query: 'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks textDelta } }' }
const createStream = (model: string, count: number) => ({ ...STREAM, variables: { input: { request: { model, count } } } })

async function all(events: AsyncIterable<ExecutionResult>): Promise<ExecutionResult[]> {
  const results: ExecutionResult[] = []
  for await (const event of events) results.push(JSON.parse(JSON.stringify(event)) as ExecutionResult)
  return results
}

/** What every link does, whatever it goes over. */
export function linkContract(name: string, open: (log: Log) => Promise<{ link: Link; seen: Seen; close: () => Promise<void> }>): void {
  describe(`Link over ${name}`, () => {
    let part: Awaited<ReturnType<typeof open>>
    const defects: unknown[] = []
    beforeAll(async () => {
      part = await open({ ...silentLog, error: (...line: unknown[]) => void defects.push(line) } as Log)
    })
    afterAll(() => part.close())
    const context = (signal = new AbortController().signal): LinkContext => ({ caller: somebody, requestId: 'req_1', signal })
    const execute = (id: string, signal?: AbortSignal) => part.link.execute({ ...MODEL, variables: { id } }, context(signal))

    it('reports an index in an error path as a number', async () => {
      const { data, errors } = await part.link.execute({ query: '{ models { id } }' }, context())
      expect({ data, path: errors?.[0]?.path }).toEqual({ data: { models: null }, path: ['models', 1] })
    })

    const openBytes = (token: string, headers = {}, signal?: AbortSignal) =>
      part.link.openBytes(byteRequest(`/bytes?token=${token}`, { method: 'GET', headers }), context(signal))

    it('streams stored bytes of any length, with their headers', async () => {
      const { status, headers, body } = await openBytes('whole')
      let sizeBytes = 0
      for await (const piece of body as AsyncIterable<Buffer>) sizeBytes += piece.length
      expect([status, sizeBytes, headers['content-length']]).toEqual([200, BYTES_SIZE, String(BYTES_SIZE)])
      expect(headers).toMatchObject({ 'content-type': 'text/plain', etag: '"abc"' })
      const part = await openBytes('whole', { range: 'bytes=-3' })
      expect([part.status, part.headers['content-range'], await text(part.body)]).toEqual([
        206,
        `bytes ${BYTES_SIZE - 3}-${BYTES_SIZE - 1}/${BYTES_SIZE}`,
        'abc',
      ])
      const beyond = await openBytes('whole', { range: `bytes=${BYTES_SIZE}-` })
      expect([beyond.status, await text(beyond.body)]).toEqual([416, ''])
    })

    it('refuses stored bytes with the code of the other side, and hides the details of a defect', async () => {
      await expect(openBytes('refused')).rejects.toMatchObject({ code: 'permission_denied', message: 'Not yours.' })
      const error = await openBytes('defect').catch((thrown) => thrown)
      expect(error).toBeInstanceOf(KisError)
      expect(error).toMatchObject({ code: 'internal', message: expect.not.stringContaining('secret') })
    })

    it('breaks the stream where stored bytes are lost', async () => {
      await expect(text((await openBytes('breaks')).body)).rejects.toThrow()
    })

    it('reads stored bytes at the speed of its reader, and ends when the reader disconnects', async () => {
      const { piecesRead, ended } = part.seen
      const leaving = new AbortController()
      const { body } = await openBytes('whole', {}, leaving.signal)
      body.once('error', () => undefined)
      await once(body, 'readable')
      // Once the buffers on the way are full, nothing more is read.
      let before = -1
      await eventually(() => {
        const isStill = part.seen.piecesRead === before
        before = part.seen.piecesRead
        return isStill
      })
      expect(part.seen.piecesRead - piecesRead).toBeLessThan(40)
      leaving.abort()
      await eventually(() => part.seen.ended > ended)
    })

    it('executes an operation with its variables', async () => {
      expect(JSON.parse(JSON.stringify(await execute('m')))).toEqual({
        data: { model: { id: 'm', vendor: 'probe', createdAt: '1970-01-01T00:00:00.000Z' } },
      })
    })

    it('carries the caller and the request ID', async () => {
      await execute('m')
      expect(part.seen.callers.at(-1)).toEqual(somebody)
      expect(part.seen.requestIds.at(-1)).toBe('req_1')
    })

    it('returns an expected failure with its extensions and its path', async () => {
      const { data, errors } = JSON.parse(JSON.stringify(await execute('refused')))
      expect(data).toEqual({ model: null })
      expect(errors).toMatchObject([
        {
          message: 'No money.',
          path: ['model'],
          extensions: { code: 'INSUFFICIENT_QUOTA', type: 'insufficient_quota', param: 'id', shouldRetry: false },
        },
      ])
    })

    it('hides a defect behind INTERNAL', async () => {
      const result = JSON.stringify(await execute('defect'))
      expect(result).toContain('INTERNAL')
      expect(result).not.toContain('secret detail')
    })

    it('refuses an invalid operation with INVALID_REQUEST', async () => {
      for (const query of ['{ nothing }', '{ model(', 'query ($id: Int!) { model(id: $id) { id } }']) {
        const { errors } = await part.link.execute({ query }, context())
        expect(errors?.[0]?.extensions.code).toBe('INVALID_REQUEST')
      }
    })

    it.each(['slow', 'slow and strict'])('notifies the resolver when the caller disconnects, which is no defect (%s)', async (id) => {
      const { aborted } = part.seen
      const logged = defects.length
      const controller = new AbortController()
      const calls = part.seen.callers.length
      const outcome = execute(id, controller.signal).catch((error) => error)
      await eventually(() => part.seen.callers.length > calls)
      controller.abort()
      await eventually(() => part.seen.aborted === aborted + 1)
      await outcome
      // What the subgraph makes of the abandoned call is over once the next one has its result.
      await execute('m')
      expect(defects.slice(logged)).toEqual([])
    })

    it('yields the events of a subscription in order', async () => {
      const events = await all(part.link.subscribe(createStream('m', 50), context()))
      expect(events.map((event) => (event.data as { chatCompletion: { textDelta: string } }).chatCompletion.textDelta)).toEqual(
        Array.from({ length: 50 }, (_, i) => String(i + 1)),
      )
      expect(events[0]).toEqual({ data: { chatCompletion: { chunks: [{ n: 1, text: 'مرحبا' }], textDelta: '1' } } })
    })

    it('yields a failure before the first event, or between events, as the last result', async () => {
      const refused = await all(part.link.subscribe(createStream('refused', 0), context()))
      expect(refused).toHaveLength(1)
      expect(refused[0]!.errors?.[0]?.extensions?.code).toBe('INSUFFICIENT_QUOTA')
      const broken = await all(part.link.subscribe(createStream('breaks', 2), context()))
      expect(broken.map((event) => event.errors?.[0]?.extensions?.code)).toEqual([undefined, undefined, 'ENGINE_ERROR'])
      const invalid = await all(part.link.subscribe({ query: 'subscription { nothing }' }, context()))
      expect(invalid[0]!.errors?.[0]?.extensions?.code).toBe('INVALID_REQUEST')
    })

    for (const [how, stop] of [
      ['its return()', (events: AsyncIterableIterator<ExecutionResult>) => events.return!()],
      ['its signal', (_events: AsyncIterableIterator<ExecutionResult>, controller: AbortController) => controller.abort()],
    ] as const) {
      it(`ends an idle subscription immediately by ${how}, while a next() is pending`, async () => {
        const { ended } = part.seen
        const controller = new AbortController()
        const events = part.link.subscribe(createStream('idle', 1), context(controller.signal))
        await events.next()
        const pending = events.next()
        await stop(events, controller)
        expect(await pending).toEqual({ done: true, value: undefined })
        await eventually(() => part.seen.ended === ended + 1)
      })
    }

    it.each([true, false])('reports whether its client was cut off: %s', async (isCut) => {
      const { ended } = part.seen
      const events = part.link.subscribe(createStream('idle', 1), { ...context(), isCut: () => isCut })
      await events.next()
      await events.return!()
      await eventually(() => part.seen.ended === ended + 1)
      expect(part.seen.cut.at(-1)).toBe(isCut)
    })

    it('starts nothing when it ends before its first next()', async () => {
      const { opened } = part.seen
      const events = part.link.subscribe(createStream('m', 1), context())
      await events.return!()
      expect(await events.next()).toEqual({ done: true, value: undefined })
      expect(part.seen.opened).toBe(opened)
    })
  })
}
