import { Resolver } from 'node:dns/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6, type LookupFunction } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { FairSemaphore } from '../process/fair-semaphore.ts'
import { isPublicAddress, judgedAddress, readIpLiteral } from './egress-address.ts'

/** One request to an untrusted URL. */
export interface EgressRequest {
  readonly url: string
  /** The organization that acquires the permit. */
  readonly organizationId: string
  /** Default: `GET`. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Headers that belong to the connection, such as `host`, are ignored. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Largest response in bytes, also after decompression. Default: 10 MiB. */
  readonly maxBytes?: number
  /**
   * Time limit for the whole exchange, from DNS to the last byte of the response, with redirects, in milliseconds.
   * Default: 10 s.
   */
  readonly totalMs?: number
  /** Default and maximum: 3. With 0 a redirect is returned as the response. */
  readonly maxRedirects?: number
  /**
   * Authorizes the request to a URL. An error that it throws ends the request, and is thrown unchanged. Called for the
   * URL and for each redirect target, once a permit is acquired: before the name of the host is looked up, and again
   * before the request is sent.
   */
  readonly authorize?: (url: string) => Promise<void>
}

/** A response, with headers in lower case. */
export interface EgressResponse<Body> {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The URL of the response, after redirects. */
  readonly url: string
  /** The decompressed body. */
  readonly body: Body
}

/**
 * The reason for a missing response. `address`: the form of the URL is forbidden. `unreachable`: anything that depends
 * on the host. The same text covers a name that is unknown or internal, a port that is closed or silent, a forbidden
 * redirect and a response that is not HTTP, so that no caller can map a network with it; `cause` is for the log.
 * `too_large`: the response exceeds the limit. `busy`: too many requests at once.
 */
export type EgressFailure = 'address' | 'unreachable' | 'too_large' | 'busy'

/** A request without a response. `reason` says why; the message is for the caller. */
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
  too_large: 'The response is too large.',
  busy: 'Too many addresses are being fetched at the moment.',
}

/** An IP address of a host. */
export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

/**
 * Returns every address of a name, at least one.
 * @throws {Error} the name has none
 */
type Resolve = (host: string) => Promise<readonly Address[]>

/** Opens connections to exactly these addresses; null: the system resolves the host. */
type Dial = (addresses: readonly Address[] | null) => buildConnector.connector

/** The operator's exceptions, and the network functions that tests replace. */
export interface EgressOptions {
  /** Entries `host:port` that are always allowed, as `parseEgressAllow` returns them. */
  readonly allowed?: ReadonlySet<string>
  readonly resolve?: Resolve
  readonly dial?: Dial
}

const MAX_BYTES = 10 * 2 ** 20
const TOTAL_MS = 10_000
const MAX_REDIRECTS = 3
const CONNECT_MS = 5_000
/** Bytes of response headers, the limit of Node's own clients. */
const MAX_HEADER_BYTES = 16 * 2 ** 10
/** Concurrent requests, each of which may use its `maxBytes`. Organizations share them. */
const MAX_AT_ONCE = 64
/** Limit of requests of one organization that wait for a permit: those of a few images. */
const MAX_WAITING = 64
/** Longest wait for a permit: the time limit of a request without a response. */
const WAIT_MS = 10_000
/** Timeout of one query to a DNS server. Each query is sent twice at most. */
const DNS_MS = 2_000
/** Timeout of a whole DNS lookup, however many servers it queries. */
const REACH_MS = 5_000
const USER_AGENT = 'knowledge-and-inference-service'

const REDIRECTS = [301, 302, 303, 307, 308]
/** These headers frame the message or name its target, and are derived from the request itself. */
const OWN_HEADERS =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|content-length|upgrade|expect|accept-encoding|sec-.*)$/i
/** Request headers that may go to another origin. All others may be secrets. */
const SHARED_HEADERS = ['accept', 'accept-language', 'user-agent']
const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * The only way in which the service calls untrusted URLs. It calls only hosts of the public internet. A name is
 * resolved once, every one of its addresses must be public, and the connection goes to those addresses, so that a
 * second DNS response cannot lead elsewhere. Each redirect is checked like the first URL, and none may lead from https
 * to http. Proxies of the environment are not used, because they would resolve the name themselves.
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

  /** Returns whether the form of the URL allows a call. `fetch` checks the addresses of its host. */
  allows(url: string): boolean {
    return judgedAddress(url, this.#allowed) !== null
  }

  /**
   * Returns whether the URL is allowed and its host has only public addresses right now. For URLs that are stored, or
   * that other services will call. The result does not distinguish an unknown name from an internal one either.
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

  /** Returns whether the operator has named the host and port, so that the URL is always allowed. */
  isNamed(url: string): boolean {
    return judgedAddress(url, this.#allowed)?.isNamed === true
  }

  /**
   * Returns the whole response.
   * @throws {EgressError} there is none
   * @throws the reason of the aborted signal, or what `authorize` throws
   */
  async fetch(request: EgressRequest, signal: AbortSignal): Promise<EgressResponse<Buffer>> {
    const response = await this.open(request, signal)
    const pieces: Uint8Array[] = []
    for await (const piece of response.body) pieces.push(piece)
    return { ...response, body: Buffer.concat(pieces) }
  }

  /**
   * Waits for a permit and returns the header of the response. Read the body to its end, or leave the iteration: the
   * permit is held until then. Throws as `fetch` does.
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
   * @throws {EgressError} `busy`: too many requests wait, or no permit became free in time
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

  /** Sends the request and follows redirects. */
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
      if (!next) throw new Error('a redirect to a forbidden address')
      if (url.protocol === 'https:' && next.url.protocol === 'http:') throw new Error('a redirect from https to http')
      // The method changes as in browsers (Fetch standard, "HTTP-redirect fetch").
      if (response.statusCode === 303 ? method !== 'HEAD' : response.statusCode < 303 && method === 'POST') {
        method = 'GET'
        body = null
        headers = withoutBody(headers)
      }
      if (next.url.origin !== url.origin) {
        if (body !== null) throw new Error('a redirect that would send the body to another origin')
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
        // The exchange's own deadline is shorter.
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

  /** Waits for work that does not take the signal. When the exchange ends, the work is abandoned. */
  orEnd<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onEnd = () => reject(this.#stop.signal.reason)
      if (this.#isOver) return onEnd()
      this.#stop.signal.addEventListener('abort', onEnd, { once: true })
      work.then(resolve, reject).finally(() => this.#stop.signal.removeEventListener('abort', onEnd))
    })
  }

  /** Waits for work as `orEnd` does. An error of the work becomes the failure of the exchange. */
  async orRefuse(work: Promise<void> | undefined): Promise<void> {
    if (!work) return
    await this.orEnd(
      work.catch((error: unknown) => {
        this.#refusal = error
        throw error
      }),
    )
  }

  /** Yields the decompressed bytes. Neither the compressed nor the decompressed bytes may exceed the limit. */
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
  // Responses to HEAD, and those without content, may name the compression of a body that does not exist.
  if (first.done) return
  if (!Object.hasOwn(DECODERS, name)) throw new Error(`a response with the content encoding ${name}`)
  const decoder = DECODERS[name]!()
  const whole = async function* () {
    yield first.value
    yield* packed
  }
  // A failure of either stream reaches the reader through the decoder.
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
 * Queries the DNS servers directly. The system's lookup would block one of the few threads that read files until a
 * server responds.
 */
function resolver(): Resolve {
  const dns = new Resolver({ timeout: DNS_MS, tries: 2 })
  return async (host) => {
    const results = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)])
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])).map(toAddress)
  }
}

/** Opens real connections. */
export const dialed: Dial = (addresses) => buildConnector({ timeout: CONNECT_MS, ...(addresses && { lookup: onlyTo(addresses) }) })

/**
 * Responds to the connection's own lookup with the addresses that were checked, asynchronously, as the system does. An
 * address without a route fails at once, and `tls.connect` throws if that happens before it returns: then nothing
 * listens to the socket's error, which ends the process.
 */
function onlyTo(addresses: readonly Address[]): LookupFunction {
  return (_host, { all }, callback) => {
    process.nextTick(() => {
      if (all) callback(null, [...addresses])
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}
