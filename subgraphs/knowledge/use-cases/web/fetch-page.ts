import { LRUCache } from 'lru-cache'
import { MAX_INLINE_FILE_BYTES } from '../../../common/catalog/plan.ts'
import { EgressError, type EgressResponse } from '../../../common/egress/egress.ts'
import { InvalidApiKey, KisError, TooBusy } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { sizeText } from '../../../common/sizes.ts'
import type { Deps } from '../deps.ts'
import { AGENT, parseRobots, type Robots } from './robots.ts'

/**
 * Time limit per address, redirects included. Together with robots.txt, it stays below the time limit of a mutation.
 */
const FETCH_MS = 15_000
const ROBOTS_MS = 5_000
/** Bytes of a robots.txt that must be read (RFC 9309, section 2.5). */
const MAX_ROBOTS_BYTES = 512 * 1024
/** How long a site's robots.txt is cached (RFC 9309 allows a day), and of how many sites. */
const ROBOTS_TTL_MS = 10 * 60_000
const MAX_ROBOTS = 100
/** Maximum cached characters of all sites: the largest robots.txt of four sites, about 60 MB of memory at most. */
const MAX_ROBOTS_CHARS = 4 * MAX_ROBOTS_BYTES

const ACCEPT = 'text/html, application/xhtml+xml, application/pdf, application/xml;q=0.9, */*;q=0.8'

interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

/** The content of an address, with validators for the next conditional fetch. */
export interface FetchedPage extends Validators {
  /** The final URL after redirects. */
  readonly url: string
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

type Refusal = 'not_public' | 'unreachable' | 'status' | 'robots_forbid' | 'robots_unreadable'

/** The address may not be fetched, or the fetch failed. */
export class FetchRefused extends KisError {
  readonly reason: Refusal

  constructor(reason: Refusal, message: string) {
    super('invalid_request', message, { param: 'input.url' })
    this.reason = reason
  }
}

/** Cached robots.txt files by origin, shared by all organizations because they are public. */
const known = new LRUCache<string, Robots>({
  max: MAX_ROBOTS,
  ttl: ROBOTS_TTL_MS,
  maxSize: MAX_ROBOTS_CHARS,
  sizeCalculation: ({ size }) => Math.max(1, size),
})

type FetchDeps = Pick<Deps, 'accounts' | 'egress' | 'log'>

/**
 * Fetches an address of the public internet if its site's robots.txt allows it. Null: the content has not changed.
 * @throws {FetchRefused} if the fetch is not allowed or the status is not 200.
 * @throws {KisError} `payload_too_large` if the content exceeds the limit of the plan or of one fetch.
 * @throws {KisError} `residency_policy_violation` if the current policy keeps everything local.
 * @throws {TooBusy} if too many fetches are in flight.
 */
export async function fetchPage(
  deps: FetchDeps,
  principal: Principal,
  url: string,
  { etag, lastModified }: Validators,
  signal: AbortSignal,
): Promise<FetchedPage | null> {
  if (!deps.egress.allows(url))
    throw new FetchRefused(
      'not_public',
      'A document is at an http or https address of a public host on port 80 or 443, without a user name.',
    )
  await requireAllowed(deps, principal, url, signal)
  const headers = {
    accept: ACCEPT,
    ...(etag !== null && { 'if-none-match': etag }),
    ...(lastModified !== null && { 'if-modified-since': lastModified }),
  }
  const { organizationId, plan } = principal
  const maxBytes = Math.min(plan.maxFileBytes, MAX_INLINE_FILE_BYTES)
  const authorize = () => requireEgressAllowed(deps, principal, signal)
  const response = await fetchOrRefuse(deps, { url, organizationId, headers, maxBytes, totalMs: FETCH_MS, authorize }, signal)
  if (response.status === 304) return null
  if (response.status !== 200)
    throw new FetchRefused('status', `The address returned status ${response.status}. Check that it can be read without signing in.`)
  // A redirect may lead to a site whose robots.txt was not checked.
  if (new URL(response.url).origin !== new URL(url).origin) await requireAllowed(deps, principal, response.url, signal)
  return {
    url: response.url,
    contentType: response.headers['content-type'],
    bytes: response.body,
    etag: shortHeader(response.headers.etag),
    lastModified: shortHeader(response.headers['last-modified']),
  }
}

const shortHeader = (header: string | undefined) => (header !== undefined && header.length <= 512 ? header : null)

/**
 * Reads the current policy, because the caller's copy may be seconds old.
 * @throws {KisError} `residency_policy_violation` if it keeps everything local.
 */
async function requireEgressAllowed({ accounts }: FetchDeps, { organizationId, apiKeyId }: Principal, signal: AbortSignal): Promise<void> {
  const now = await accounts.findPrincipal(organizationId, apiKeyId, signal)
  if (!now) throw new InvalidApiKey()
  if (now.residencyPolicy === 'local_only')
    throw new KisError(
      'residency_policy_violation',
      "The organization's residency policy permits local engines only, so nothing is fetched from elsewhere. Upload the file.",
      { param: 'input.url' },
    )
}

async function fetchOrRefuse(
  { egress, log }: FetchDeps,
  request: Parameters<Deps['egress']['fetch']>[0] & { readonly maxBytes: number },
  signal: AbortSignal,
): Promise<EgressResponse<Buffer>> {
  try {
    return await egress.fetch(request, signal)
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    log.debug({ err: error }, 'an address could not be fetched')
    if (error.reason === 'busy') throw new TooBusy('The service fetches as many addresses as it can.')
    if (error.reason === 'too_large')
      throw new KisError('payload_too_large', `What is at the address has more than ${sizeText(request.maxBytes)}. Upload it as a file.`, {
        param: 'input.url',
      })
    throw new FetchRefused(error.reason === 'address' ? 'not_public' : 'unreachable', 'The address could not be fetched.')
  }
}

async function requireAllowed(deps: FetchDeps, principal: Principal, url: string, signal: AbortSignal): Promise<void> {
  const { origin } = new URL(url)
  const cached = known.get(origin)
  const robots = cached ?? (await readRobots(deps, principal, origin, signal))
  if (robots && !cached) known.set(origin, robots)
  if (!robots) {
    const message = 'The robots.txt of the site cannot be read at the moment, so nothing of it is fetched. Try again later.'
    throw new FetchRefused('robots_unreadable', message)
  }
  const isAllowed = robots.isAllowed(url)
  if (isAllowed === null) {
    const message = 'The robots.txt of the site has too many wildcards to match an address of this length, so it is not fetched.'
    throw new FetchRefused('robots_unreadable', message)
  }
  if (!isAllowed) throw new FetchRefused('robots_forbid', `The robots.txt of the site does not allow ${AGENT} to fetch this address.`)
}

/**
 * A site without a robots.txt allows everything. Null: the site fails, which forbids everything (RFC 9309, section
 * 2.3.1).
 */
async function readRobots(deps: FetchDeps, principal: Principal, origin: string, signal: AbortSignal) {
  const { organizationId } = principal
  const url = `${origin}/robots.txt`
  const authorize = () => requireEgressAllowed(deps, principal, signal)
  try {
    const request = { url, organizationId, maxBytes: MAX_ROBOTS_BYTES, totalMs: ROBOTS_MS, authorize }
    const { status, body } = await deps.egress.fetch(request, signal)
    if (status >= 500) return null
    return parseRobots(url, status === 200 ? body.toString() : '')
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    if (error.reason === 'busy') throw new TooBusy('The service fetches as many addresses as it can.')
    return null
  }
}
