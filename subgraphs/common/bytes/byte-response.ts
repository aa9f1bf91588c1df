import { Readable } from 'node:stream'
import { FairSemaphore } from '../process/fair-semaphore.ts'

/** Headers of a request that say which bytes the client wants. */
const REQUEST_HEADERS = ['accept-encoding', 'range', 'if-range', 'if-none-match'] as const
/** Headers of a response that describe its bytes. */
const RESPONSE_HEADERS = [
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'x-content-type-options',
] as const

/** A request for stored bytes. */
export interface ByteRequest {
  /** As `BytePaths` has signed it. */
  readonly path: string
  /** `HEAD` reads nothing. */
  readonly method: 'GET' | 'HEAD'
  readonly headers: Readonly<Partial<Record<(typeof REQUEST_HEADERS)[number], string>>>
}

/** A response that any HTTP server can send as it is. */
export interface ByteResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** It breaks off with an error where bytes cannot be read. Destroy it if nobody reads it to the end. */
  readonly body: Readable
}

/** What a store has. */
export interface StoredBytes {
  /** Whose they are. */
  readonly organizationId: string
  /** The name of the file to save them as. Null: they are no file. */
  readonly name: string | null
  readonly mediaType: string
  /** How they are encoded. Default: not. */
  readonly encoding?: 'gzip'
  readonly sizeBytes: number
  /** Of the content: equal bytes have the same. */
  readonly sha256: string
  /** Yields exactly `length` bytes in pieces, or throws. Each piece belongs to the reader. */
  read(range: ByteRange): AsyncGenerator<Uint8Array>
}

export interface ByteRange {
  readonly offset: number
  readonly length: number
}

/**
 * Streams write one piece in each tick of the event loop, those of organizations in turn, so that a chat waits for one
 * piece and not for one of each download.
 */
const sendPermits = new FairSemaphore(1, Number.POSITIVE_INFINITY)

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** The request for a path, with those headers of a client's request that it may have. Default: for all bytes. */
export function byteRequest(
  path: string,
  { method, headers }: { readonly method: string; readonly headers: Headers } = { method: 'GET', headers: {} },
): ByteRequest {
  return { path, method: method === 'HEAD' ? 'HEAD' : 'GET', headers: pick(headers, REQUEST_HEADERS) }
}

/** The response of another process. */
export function passedOn(status: number, headers: Headers, body: Readable): ByteResponse {
  return { status, headers: pick(headers, RESPONSE_HEADERS) as ByteResponse['headers'], body }
}

function pick<Name extends string>(headers: Headers, names: readonly Name[]): Partial<Record<Name, string>> {
  return Object.fromEntries(names.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : []))) as Partial<
    Record<Name, string>
  >
}

/**
 * Responds with stored bytes, or one range of them (RFC 9110, sections 13 and 14). The first piece is read before the
 * response begins, so that bytes that are lost have a status of their own. Each piece is read once the client has taken
 * the one before.
 */
export async function respondWithBytes({ method, headers }: ByteRequest, stored: StoredBytes, signal: AbortSignal): Promise<ByteResponse> {
  const { sizeBytes } = stored
  const etag = `"${stored.sha256}"`
  const known = { etag, 'accept-ranges': 'bytes', 'cache-control': 'private, no-cache' }
  if (matches(headers['if-none-match'], etag)) return { status: 304, headers: known, body: Readable.from([]) }
  const isCurrent = headers['if-range'] === undefined || headers['if-range'] === etag
  const range = isCurrent ? readRange(headers.range, sizeBytes) : undefined
  if (range === null)
    return {
      status: 416,
      headers: { ...known, 'content-range': `bytes */${sizeBytes}`, 'content-length': '0' },
      body: Readable.from([]),
    }
  const { offset, length } = range ?? { offset: 0, length: sizeBytes }
  return {
    status: range ? 206 : 200,
    headers: {
      ...known,
      'content-type': stored.mediaType,
      'content-length': String(length),
      ...(stored.name !== null && { 'content-disposition': attachment(stored.name) }),
      ...(stored.encoding && { 'content-encoding': stored.encoding }),
      // A stored page must not run as one of our own.
      'x-content-type-options': 'nosniff',
      ...(range && { 'content-range': `bytes ${offset}-${offset + length - 1}/${sizeBytes}` }),
    },
    body: method === 'HEAD' ? Readable.from([]) : await openStream(stored.read({ offset, length }), stored.organizationId, signal),
  }
}

async function openStream(pieces: AsyncGenerator<Uint8Array>, organizationId: string, signal: AbortSignal): Promise<Readable> {
  const first = await pieces.next()
  async function* all() {
    try {
      for (let piece = first; !piece.done; piece = await pieces.next()) {
        setImmediate(await sendPermits.acquire(organizationId, signal))
        yield piece.value
      }
    } finally {
      await pieces.return(undefined)
    }
  }
  return freeingPieces(Readable.from(all(), { objectMode: false, signal }))
}

/**
 * Has `pipe` free each piece once it is written. V8 would otherwise collect the whole heap for each 20 MiB of pieces,
 * which takes three times the CPU of all the rest.
 */
function freeingPieces(pieces: Readable): Readable {
  return Object.assign(pieces, {
    pipe<Destination extends NodeJS.WritableStream>(destination: Destination): Destination {
      pieces.on('data', (piece: Buffer<ArrayBuffer>) => {
        if (destination.write(piece, () => free(piece))) return
        pieces.pause()
        destination.once('drain', () => pieces.resume())
      })
      pieces.once('end', () => destination.end())
      return destination
    },
  })
}

function free({ length, buffer }: Buffer<ArrayBuffer>): void {
  if (length === buffer.byteLength) buffer.transfer(0)
}

function matches(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((each) => ['*', etag, `W/${etag}`].includes(each.trim())) ?? false
}

/** Reads one range. Undefined: the whole is wanted, or several ranges, which a server may ignore. Null: it has no bytes. */
function readRange(header: string | undefined, sizeBytes: number): ByteRange | null | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  const offset = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1)
  if (first !== '' && last !== '' && Number(last) < offset) return undefined
  return offset < end ? { offset, length: end - offset } : null
}

/** Writes the header as in RFC 6266: the name in UTF-8 (RFC 5987), and in ASCII for old clients. */
function attachment(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  // JSON can carry a lone surrogate, which UTF-8 cannot.
  const utf8 = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`
}
