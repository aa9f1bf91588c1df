import { Resolver } from 'node:dns/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6, type LookupFunction } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { FairPlaces } from '../process/fair-places.ts'
import { isPublicAddress, judgedAddress, literalOf } from './egress-address.ts'

/** One request to an address that a caller gave. */
export interface EgressRequest {
  readonly url: string
  /** Whose place it takes. */
  readonly organizationId: string
  /** Default: `GET`. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Those that belong to the connection, such as `host`, are ignored. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Most bytes of the answer, also unpacked. Default: 10 MiB. */
  readonly maxBytes?: number
  /** From the look at DNS to the answer's last byte, redirects included. Default: 10 s. */
  readonly totalMs?: number
  /** Default, and most: 3. With 0 a redirect is given back as the answer that it is. */
  readonly maxRedirects?: number
}

export interface EgressAnswer<Body> {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Where the answer came from, after redirects. */
  readonly url: string
  /** Unpacked. */
  readonly body: Body
}

/**
 * Why there is no answer. `address`: it may not be asked, as its form shows. `unreachable`: everything that depends on what is at the
 * address; one text for a name that is unknown or leads inside, a port that is closed or silent, a forbidden redirect and an answer that is
 * no HTTP, so that nobody can map a network by it; `cause` is for the log. `too_large`: the answer. `busy`: too many requests at once.
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

/** Every address of a name, at least one. @throws {Error} there is none. */
export type Resolve = (host: string) => Promise<readonly Address[]>

/** Opens connections to these addresses and no others; null: wherever the system finds the host. */
export type Dial = (addresses: readonly Address[] | null) => buildConnector.connector

export interface EgressOptions {
  /** `host:port`s that are asked wherever they are, as `parseEgressAllow` gives them. */
  readonly allowed?: ReadonlySet<string>
  readonly resolve?: Resolve
  readonly dial?: Dial
}

const MAX_BYTES = 10 * 2 ** 20
const TOTAL_MS = 10_000
const MAX_REDIRECTS = 3
const CONNECT_MS = 5_000
/** Of an answer; as Node's own clients have it. */
const MAX_HEADER_BYTES = 16 * 2 ** 10
/** Requests at once, each of which may hold its `maxBytes`; organizations share the places. */
const MAX_AT_ONCE = 64
/** Requests of one organization that wait for a place: those of some images. */
const MAX_WAITING = 64
/** For a place: as long as a request takes that gets no answer. */
const WAIT_MS = 10_000
/** Of one question to a DNS server, which is put twice. */
const DNS_MS = 2_000
/** Of a look at DNS by itself, whatever number of servers is asked. */
const REACH_MS = 5_000
const USER_AGENT = 'knowledge-and-inference-service'

const REDIRECTS = [301, 302, 303, 307, 308]
/** They frame the message or name its target, and are made from the request itself. */
const OWN_HEADERS =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|content-length|upgrade|expect|accept-encoding|sec-.*)$/i
/** What of a caller's headers may go on to another origin; all others may be secrets. */
const SHARED_HEADERS = ['accept', 'accept-language', 'user-agent']
const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * The only way by which the service asks an address that a caller gave. It asks hosts of the public internet and no others: a name is
 * resolved once, every one of its addresses must be public, and the connection goes to those very addresses, so that no second answer of
 * DNS can lead elsewhere. Each redirect is judged as the first address was, and none leads from https to http. Proxies of the environment
 * are not used, because they would resolve the name themselves.
 */
export class Egress {
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #dial: Dial
  readonly #places = new FairPlaces(MAX_AT_ONCE, MAX_WAITING)

  constructor({ allowed = new Set(), resolve = resolver(), dial = dialed }: EgressOptions = {}) {
    this.#allowed = allowed
    this.#resolve = resolve
    this.#dial = dial
  }

  /** Whether the address may be asked, as far as its form shows. What its name leads to is judged by `fetch`. */
  mayAsk(url: string): boolean {
    return judgedAddress(url, this.#allowed) !== null
  }

  /**
   * Whether the address may be asked and its name leads to public hosts only at this moment; for addresses that are kept, or that others will ask.
   * A name that is unknown and one that leads inside are the same here too. @throws the signal's reason.
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

  /** Whether the operator has named its host and port, so that it is asked wherever it is. */
  isNamed(url: string): boolean {
    return judgedAddress(url, this.#allowed)?.isNamed === true
  }

  /** The whole answer. @throws {EgressError} there is none. @throws the signal's reason. */
  async fetch(request: EgressRequest, signal: AbortSignal): Promise<EgressAnswer<Buffer>> {
    const answer = await this.open(request, signal)
    const pieces: Uint8Array[] = []
    for await (const piece of answer.body) pieces.push(piece)
    return { ...answer, body: Buffer.concat(pieces) }
  }

  /** Waits for a place and gives the answer's header; its body is read piece by piece, and must be, to its end or until it is left. Errors as of `fetch`. */
  async open(request: EgressRequest, signal: AbortSignal): Promise<EgressAnswer<AsyncIterable<Uint8Array>>> {
    signal.throwIfAborted()
    const leave = await this.#placeOf(request, signal)
    const exchange = new Exchange(request.totalMs ?? TOTAL_MS, signal, leave)
    try {
      const { url, response } = await this.#follow(request, exchange)
      const { statusCode: status, headers } = response
      const maxBytes = request.maxBytes ?? MAX_BYTES
      if (Number(headers['content-length']) > maxBytes && request.method !== 'HEAD') throw new EgressError('too_large')
      return { status, headers, url: url.href, body: exchange.read(response, maxBytes) }
    } catch (error) {
      exchange.end()
      throw exchange.errorOf(error)
    }
  }

  /** @throws {EgressError} `busy` @throws the signal's reason. */
  async #placeOf({ organizationId }: EgressRequest, signal: AbortSignal): Promise<() => void> {
    const leave = this.#places.tryTake(organizationId)
    if (leave) return leave
    const late = AbortSignal.timeout(WAIT_MS)
    try {
      return await this.#places.take(organizationId, AbortSignal.any([signal, late]))
    } catch (error) {
      signal.throwIfAborted()
      throw new EgressError('busy', error)
    }
  }

  /** Asks, and asks again where a redirect leads. */
  async #follow(request: EgressRequest, exchange: Exchange): Promise<{ readonly url: URL; readonly response: Dispatcher.ResponseData }> {
    const judged = judgedAddress(request.url, this.#allowed)
    if (!judged) throw new EgressError('address')
    let { url, isNamed } = judged
    let { method = 'GET', body = null } = request
    let headers = ownHeaders(request.headers ?? {})
    let left = Math.min(request.maxRedirects ?? MAX_REDIRECTS, MAX_REDIRECTS)
    for (;;) {
      const response = await this.#ask(url, isNamed, { method, headers, body }, exchange)
      const { location } = response.headers
      if (!REDIRECTS.includes(response.statusCode) || typeof location !== 'string' || request.maxRedirects === 0) return { url, response }
      if (left === 0) throw new Error('too many redirects')
      left -= 1
      const next = URL.canParse(location, url.href) ? judgedAddress(new URL(location, url).href, this.#allowed) : null
      if (!next) throw new Error('a redirect to an address that may not be asked')
      if (url.protocol === 'https:' && next.url.protocol === 'http:') throw new Error('a redirect from https to http')
      // As browsers do it (Fetch standard, "HTTP-redirect fetch").
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

  async #ask(
    url: URL,
    isNamed: boolean,
    { method, headers, body }: { readonly method: string; readonly headers: Headers; readonly body: string | Uint8Array | null },
    exchange: Exchange,
  ): Promise<Dispatcher.ResponseData> {
    const client = exchange.use(
      // Each hop has a client of its own, so that no connection serves a name whose addresses were judged for an earlier request.
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
    return client.request({
      method: method as Dispatcher.HttpMethod,
      path: `${url.pathname}${url.search}`,
      headers: { 'user-agent': USER_AGENT, ...headers, 'accept-encoding': 'identity' },
      body,
      signal: exchange.signal,
    })
  }

  async #publicAddresses(url: URL): Promise<readonly Address[]> {
    const literal = literalOf(url)
    if (literal !== null) return [addressOf(literal)]
    const addresses = await this.#resolve(url.hostname)
    // A name with one address inside is a trap, whatever its others are.
    if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address))) throw new Error('not a public host')
    return addresses
  }
}

type Headers = Readonly<Record<string, string>>

/** One request with its redirects: its deadline, its connections, and its end, which comes once. */
class Exchange {
  readonly #stop = new AbortController()
  readonly #caller: AbortSignal
  readonly #clients: Client[] = []
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: () => void
  readonly #onAbort = () => this.end()
  #isOver = false

  constructor(totalMs: number, caller: AbortSignal, onEnd: () => void) {
    this.#caller = caller
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.end(), totalMs)
    caller.addEventListener('abort', this.#onAbort, { once: true })
    // A signal that was aborted before now sends no event any more.
    if (caller.aborted) this.end()
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  use(client: Client): Client {
    this.#clients.push(client)
    return client
  }

  /** For work that does not know of the signal; it is left to itself when the exchange ends. */
  orEnd<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onEnd = () => reject(this.#stop.signal.reason)
      if (this.#isOver) return onEnd()
      this.#stop.signal.addEventListener('abort', onEnd, { once: true })
      work.then(resolve, reject).finally(() => this.#stop.signal.removeEventListener('abort', onEnd))
    })
  }

  /** The bytes, unpacked; neither the packed nor the unpacked ones are more than the limit. */
  async *read({ body, headers }: Dispatcher.ResponseData, maxBytes: number): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const piece of bounded(decoded(body, headers['content-encoding'], maxBytes), maxBytes)) yield piece
    } catch (error) {
      throw this.errorOf(error)
    } finally {
      this.end()
    }
  }

  errorOf(error: unknown): unknown {
    if (this.#caller.aborted) return this.#caller.reason
    return error instanceof EgressError ? error : new EgressError('unreachable', error)
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
  const packed = bounded(body, maxBytes)
  const first = await packed.next()
  // Answers to HEAD, and those without content, name the packing of a body that they do not have.
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

async function* bounded(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let size = 0
  for await (const piece of source) {
    size += piece.length
    if (size > maxBytes) throw new EgressError('too_large')
    yield piece
  }
}

function ownHeaders(given: Headers): Headers {
  const names = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(names.filter(([name]) => !OWN_HEADERS.test(name)))
}

function withoutBody(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('content-')))
}

function addressOf(address: string): Address {
  return { address, family: isIPv6(address) ? 6 : 4 }
}

/** Asks the DNS servers itself: the system's own lookup blocks one of the few threads that files are read on until a server answers. */
function resolver(): Resolve {
  const dns = new Resolver({ timeout: DNS_MS, tries: 2 })
  return async (host) => {
    const answers = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])).map(addressOf)
  }
}

/** The real one. */
export const dialed: Dial = (addresses) => buildConnector({ timeout: CONNECT_MS, ...(addresses && { lookup: onlyTo(addresses) }) })

/** Answers the connection's own look at DNS with what was judged. */
function onlyTo(addresses: readonly Address[]): LookupFunction {
  return (_host, { all }, callback) => {
    if (all) callback(null, [...addresses])
    else callback(null, addresses[0]!.address, addresses[0]!.family)
  }
}
