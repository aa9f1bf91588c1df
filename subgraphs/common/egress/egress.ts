import { Resolver } from 'node:dns/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6, type LookupFunction } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { FairSemaphore } from '../process/fair-semaphore.ts'
import { isPublicAddress, judgedAddress, readIpLiteral } from './egress-address.ts'

/** One request to an address that a caller gave. */
export interface EgressRequest {
  readonly url: string
  /** The organization whose place it takes. */
  readonly organizationId: string
  /** Default: `GET`. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Headers that belong to the connection, such as `host`, are ignored. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Largest answer in bytes, also after decompression. Default: 10 MiB. */
  readonly maxBytes?: number
  /** Time for everything, from DNS to the last byte of the answer, with redirects, in milliseconds. Default: 10 s. */
  readonly totalMs?: number
  /** Default and maximum: 3. With 0 a redirect is returned as the answer. */
  readonly maxRedirects?: number
  /**
   * Whether the request may still leave for this address: what it throws ends the request, and is thrown unchanged.
   * Called for the address and for each to which a redirect leads, once a place is free: before the name of the host is
   * looked up, and again before the request is sent.
   */
  readonly authorize?: (url: string) => Promise<void>
}

export interface EgressResponse<Body> {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The address that answered, after redirects. */
  readonly url: string
  /** Decompressed. */
  readonly body: Body
}

/**
 * Why there is no answer. `address`: its form forbids it. `unreachable`: anything that depends on what is at the
 * address. One text for a name that is unknown or internal, a port that is closed or silent, a forbidden redirect and
 * an answer that is not HTTP, so that nobody can map a network with it; `cause` is for the log. `too_large`: the answer
 * exceeds the limit. `busy`: too many requests at once.
 */
export type EgressFailure = 'address' | 'unreachable' | 'too_large' | 'busy'

export class EgressError extends Error {
  readonly reason: EgressFailure

  constructor(reason: EgressFailure, cause?: unknown) {
    super(TEXTS[reason], cause === undefined ? undefined : { cause })
    this.name = 'EgressError'
    this.reason = reason
  }
}

const TEXTS: Readonly<Record<EgressFailure, string>> = {
  address: 'Only http and https addresses of public hosts on ports 80 and 443, without a user name, are fetched.',
  unreachable: 'The address could not be fetched.',
  too_large: 'The answer is too large.',
  busy: 'Too many addresses are being fetched at the moment.',
}

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

/**
 * Gives every address of a name, at least one.
 * @throws {Error} the name has none
 */
type Resolve = (host: string) => Promise<readonly Address[]>

/** Opens connections to exactly these addresses; null: wherever the system finds the host. */
type Dial = (addresses: readonly Address[] | null) => buildConnector.connector

export interface EgressOptions {
  /** Entries `host:port` that are always allowed, as `parseEgressAllow` gives them. */
  readonly allowed?: ReadonlySet<string>
  readonly resolve?: Resolve
  readonly dial?: Dial
}

const MAX_BYTES = 10 * 2 ** 20
const TOTAL_MS = 10_000
const MAX_REDIRECTS = 3
const CONNECT_MS = 5_000
/** Headers of an answer, as Node's own clients limit them. */
const MAX_HEADER_BYTES = 16 * 2 ** 10
/** Concurrent requests, each of which may use its `maxBytes`. Organizations share the places. */
const MAX_AT_ONCE = 64
/** Requests of one organization that wait for a place: those of a few images. */
const MAX_WAITING = 64
/** Longest wait for a place: as long as a request without an answer takes. */
const WAIT_MS = 10_000
/** One question to a DNS server, which is asked twice. */
const DNS_MS = 2_000
/** A DNS lookup by itself, however many servers it asks. */
const REACH_MS = 5_000
const USER_AGENT = 'knowledge-and-inference-service'

const REDIRECTS = [301, 302, 303, 307, 308]
/** These frame the message or name its target, and are derived from the request itself. */
const OWN_HEADERS =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|content-length|upgrade|expect|accept-encoding|sec-.*)$/i
/** Headers of a caller that may go to another origin. All others may be secrets. */
const SHARED_HEADERS = ['accept', 'accept-language', 'user-agent']
const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * The only way in which the service calls an address that a caller gave. It calls only hosts of the public internet. A
 * name is resolved once, every one of its addresses must be public, and the connection goes to those addresses, so that
 * a second DNS answer cannot lead elsewhere. Each redirect is checked like the first address, and none may lead from
 * https to http. Proxies of the environment are not used, because they would resolve the name themselves.
 */
export class Egress {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #dial: Dial
  readonly #permits = new FairSemaphore(MAX_AT_ONCE, MAX_WAITING)

  constructor({ allowed = new Set(), resolve = resolver(), dial = dialed }: EgressOptions = {}) {
    this.#allowed = allowed
    this.#resolve = resolve
    this.#dial = dial
  }

  /** Whether the form of the address allows a call. `fetch` checks where its name leads. */
  allows(url: string): boolean {
    return judgedAddress(url, this.#allowed) !== null
  }

  /**
   * Whether the address is allowed and its name leads to public hosts right now. For addresses that are stored, or that
   * others will call. Does not tell an unknown name from an internal one either.
   * @throws the reason of the aborted signal
   */
  async mayReach(url: string, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    const judged = judgedAddress(url, this.#allowed)
    if (judged === null || judged.isNamed) return judged !== null
    const exchange = new Exchange(REACH_MS, signal, () => undefined)
    try {
      await exchange.orEnd(this.#publicAddresses(judged.url))
      return true
    } catch {
      signal.throwIfAborted()
      return false
    } finally {
      exchange.end()
    }
  }

  /** Whether the operator has named its host and port, so that it is always allowed. */
  isNamed(url: string): boolean {
    return judgedAddress(url, this.#allowed)?.isNamed === true
  }

  /**
   * Gives the whole answer.
   * @throws {EgressError} there is none
   * @throws the reason of the aborted signal, or what `letLeave` throws
   */
  async fetch(request: EgressRequest, signal: AbortSignal): Promise<EgressResponse<Buffer>> {
    const response = await this.open(request, signal)
    const pieces: Uint8Array[] = []
    for await (const piece of response.body) pieces.push(piece)
    return { ...response, body: Buffer.concat(pieces) }
  }

  /**
   * Waits for a place and gives the header of the answer. Read the body to its end, or leave the iteration: the place
   * is held until then. Throws as `fetch` does.
   */
  async open(request: EgressRequest, signal: AbortSignal): Promise<EgressResponse<AsyncIterable<Uint8Array>>> {
    signal.throwIfAborted()
    const release = await this.#acquire(request, signal)
    const exchange = new Exchange(request.totalMs ?? TOTAL_MS, signal, release)
    try {
      const { url, response } = await this.#follow(request, exchange)
      const { statusCode: status, headers } = response
      const maxBytes = request.maxBytes ?? MAX_BYTES
      if (Number(headers['content-length']) > maxBytes && request.method !== 'HEAD') throw new EgressError('too_large')
      return { status, headers, url: url.href, body: exchange.read(response, maxBytes) }
    } catch (error) {
      exchange.end()
      throw exchange.toEgressError(error)
    }
  }

  /**
   * @throws {EgressError} `busy`: too many requests wait, or no place became free in time
   * @throws the reason of the aborted signal
   */
  async #acquire({ organizationId }: EgressRequest, signal: AbortSignal): Promise<() => void> {
    const release = this.#permits.tryAcquire(organizationId)
    if (release) return release
    const late = AbortSignal.timeout(WAIT_MS)
    try {
      return await this.#permits.acquire(organizationId, AbortSignal.any([signal, late]))
    } catch (error) {
      signal.throwIfAborted()
      throw new EgressError('busy', error)
    }
  }

  /** Sends the request, and again where a redirect leads. */
  async #follow(request: EgressRequest, exchange: Exchange): Promise<{ readonly url: URL; readonly response: Dispatcher.ResponseData }> {
    const judged = judgedAddress(request.url, this.#allowed)
    if (!judged) throw new EgressError('address')
    let { url, isNamed } = judged
    let { method = 'GET', body = null } = request
    let headers = ownHeaders(request.headers ?? {})
    let left = Math.min(request.maxRedirects ?? MAX_REDIRECTS, MAX_REDIRECTS)
    for (;;) {
      const authorize = () => exchange.orRefuse(request.authorize?.(url.href))
      const response = await this.#send(url, isNamed, { method, headers, body }, authorize, exchange)
      const { location } = response.headers
      if (!REDIRECTS.includes(response.statusCode) || typeof location !== 'string' || request.maxRedirects === 0) return { url, response }
      if (left === 0) throw new Error('too many redirects')
      left -= 1
      const next = URL.canParse(location, url.href) ? judgedAddress(new URL(location, url).href, this.#allowed) : null
      if (!next) throw new Error('a redirect to an address that may not be asked')
      if (url.protocol === 'https:' && next.url.protocol === 'http:') throw new Error('a redirect from https to http')
      // As in browsers (Fetch standard, "HTTP-redirect fetch").
      if (response.statusCode === 303 ? method !== 'HEAD' : response.statusCode < 303 && method === 'POST') {
        method = 'GET'
        body = null
        headers = withoutBody(headers)
      }
      if (next.url.origin !== url.origin) {
        if (body !== null) throw new Error('a redirect that would give the body to another origin')
        headers = Object.fromEntries(Object.entries(headers).filter(([name]) => SHARED_HEADERS.includes(name)))
      }
      url = next.url
      isNamed = next.isNamed
    }
  }

  async #send(
    url: URL,
    isNamed: boolean,
    { method, headers, body }: { readonly method: string; readonly headers: Headers; readonly body: string | Uint8Array | null },
    authorize: () => Promise<void>,
    exchange: Exchange,
  ): Promise<Dispatcher.ResponseData> {
    if (!isNamed) await authorize()
    const client = exchange.use(
      // Each hop has its own client, so that no connection serves a name whose addresses were checked for an earlier
      // request.
      new Client(url.origin, {
        connect: this.#dial(isNamed ? null : await exchange.orEnd(this.#publicAddresses(url))),
        pipelining: 1,
        allowH2: false,
        maxHeaderSize: MAX_HEADER_BYTES,
        // The exchange's own deadline comes first.
        headersTimeout: 0,
        bodyTimeout: 0,
      }),
    )
    await authorize()
    return client.request({
      method: method as Dispatcher.HttpMethod,
      path: `${url.pathname}${url.search}`,
      headers: { 'user-agent': USER_AGENT, ...headers, 'accept-encoding': 'identity' },
      body,
      signal: exchange.signal,
    })
  }

  async #publicAddresses(url: URL): Promise<readonly Address[]> {
    const literal = readIpLiteral(url)
    if (literal !== null) return [toAddress(literal)]
    const addresses = await this.#resolve(url.hostname)
    // A name with one internal address is a trap, whatever the others are.
    if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address))) throw new Error('not a public host')
    return addresses
  }
}

type Headers = Readonly<Record<string, string>>

/** One request with its redirects. It owns the deadline and the connections, and ends once. */
class Exchange {
  readonly #stop = new AbortController()
  readonly #caller: AbortSignal
  readonly #clients: Client[] = []
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: () => void
  readonly #onAbort = () => this.end()
  #refusal: unknown
  #isOver = false

  constructor(totalMs: number, caller: AbortSignal, onEnd: () => void) {
    this.#caller = caller
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.end(), totalMs)
    caller.addEventListener('abort', this.#onAbort, { once: true })
    // A signal that was already aborted emits no event.
    if (caller.aborted) this.end()
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  use(client: Client): Client {
    this.#clients.push(client)
    return client
  }

  /** For work that does not take the signal. When the exchange ends, the work is abandoned. */
  orEnd<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onEnd = () => reject(this.#stop.signal.reason)
      if (this.#isOver) return onEnd()
      this.#stop.signal.addEventListener('abort', onEnd, { once: true })
      work.then(resolve, reject).finally(() => this.#stop.signal.removeEventListener('abort', onEnd))
    })
  }

  /** As `orEnd`. What the work throws becomes the failure of the exchange. */
  async orRefuse(work: Promise<void> | undefined): Promise<void> {
    if (!work) return
    await this.orEnd(
      work.catch((error: unknown) => {
        this.#refusal = error
        throw error
      }),
    )
  }

  /** Gives the decompressed bytes. Neither the compressed nor the decompressed bytes may exceed the limit. */
  async *read({ body, headers }: Dispatcher.ResponseData, maxBytes: number): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const piece of limitSize(decoded(body, headers['content-encoding'], maxBytes), maxBytes)) yield piece
    } catch (error) {
      throw this.toEgressError(error)
    } finally {
      this.end()
    }
  }

  toEgressError(error: unknown): unknown {
    if (this.#caller.aborted) return this.#caller.reason
    return error instanceof EgressError || (error !== undefined && error === this.#refusal) ? error : new EgressError('unreachable', error)
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#caller.removeEventListener('abort', this.#onAbort)
    this.#stop.abort()
    for (const client of this.#clients) client.destroy().catch(() => undefined)
    this.#onEnd()
  }
}

async function* decoded(body: Readable, encoding: string | string[] | undefined, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  const name = String(encoding ?? 'identity').toLowerCase()
  if (name === 'identity') return yield* body
  const packed = limitSize(body, maxBytes)
  const first = await packed.next()
  // Answers to HEAD, and those without content, may name the compression of a body that is not there.
  if (first.done) return
  if (!Object.hasOwn(DECODERS, name)) throw new Error(`an answer packed as ${name}`)
  const decoder = DECODERS[name]!()
  const whole = async function* () {
    yield first.value
    yield* packed
  }
  // A failure of either end reaches the reader through the decoder.
  pipeline(whole, decoder, () => undefined)
  yield* decoder
}

async function* limitSize(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let size = 0
  for await (const piece of source) {
    size += piece.length
    if (size > maxBytes) throw new EgressError('too_large')
    yield piece
  }
}

function ownHeaders(provided: Headers): Headers {
  const names = Object.entries(provided).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(names.filter(([name]) => !OWN_HEADERS.test(name)))
}

function withoutBody(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('content-')))
}

function toAddress(address: string): Address {
  return { address, family: isIPv6(address) ? 6 : 4 }
}

/**
 * Queries the DNS servers itself. The system's lookup would block one of the few threads that read files until a server
 * answers.
 */
function resolver(): Resolve {
  const dns = new Resolver({ timeout: DNS_MS, tries: 2 })
  return async (host) => {
    const results = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)])
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])).map(toAddress)
  }
}

/** Connects for real. */
export const dialed: Dial = (addresses) => buildConnector({ timeout: CONNECT_MS, ...(addresses && { lookup: onlyTo(addresses) }) })

/**
 * Answers the connection's own lookup with the addresses that were checked; later, as the system does. An address
 * without a route fails at once, and `tls.connect` throws if that is before it returns: then nobody hears the socket's
 * error, which ends the process.
 */
function onlyTo(addresses: readonly Address[]): LookupFunction {
  return (_host, { all }, callback) => {
    process.nextTick(() => {
      if (all) callback(null, [...addresses])
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}
