import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

const SCHEMES = ['http:', 'https:']
const PORTS = ['80', '443']
/** Signed URLs of object stores have about 2,000 characters. */
const MAX_URL_LENGTH = 8_192
/**
 * Characters that this parser drops or reads as a slash, and other parsers do not: many parsers read another host from
 * `http://public.test\@127.0.0.1`.
 */
const READ_DIFFERENTLY = /[\\\u0000-\u001f\u007f]/
const AUTHORITY = /^[^/]*\/\/([^/?#:]*)/
/**
 * The range of public IPv6 hosts (RFC 4291, section 2.4). Outside it are forms that contain an IPv4 address, such as
 * `::127.0.0.1`.
 */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/**
 * Azure's platform address. It is public by number but internal on every machine of Azure, with DNS, DHCP and the
 * credentials of the guest agent.
 */
const INSIDE = [ipaddr.IPv4.parseCIDR('168.63.129.16/32')]

/**
 * Suffixes of internal names: reserved for a machine or its network (RFC 6761; RFC 6762 with its appendix G; RFC 8375
 * and similar below `arpa`; `internal` by ICANN in 2024, where clouds have their metadata), or used for services by
 * Kubernetes, Consul and routers.
 */
const INSIDE_NAMES: ReadonlySet<string> = new Set(
  'localhost localdomain local internal intranet private corp home lan arpa svc consul docker'.split(' '),
)

/**
 * Returns whether the host of a URL is a name that no public host has. The resolver's search list completes a name
 * without a dot.
 */
function isInsideName(hostname: string): boolean {
  const labels = hostname.replace(/\.$/, '').split('.')
  return labels.length < 2 || labels.includes('') || INSIDE_NAMES.has(labels.at(-1)!)
}

/** Returns whether the address, in the form of the system or `new URL`, belongs to the public internet. */
export function isPublicAddress(text: string): boolean {
  // ipaddr.js also reads octal and short forms, but some of them differently from a connection.
  if (isIP(text) === 0) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4'
    ? !INSIDE.some((range) => address.match(range))
    : address.match(GLOBAL_IPV6) && (address as ipaddr.IPv6).zoneId === undefined
}

/** Returns host and port of a URL, in the form of `KIS_EGRESS_ALLOW`. */
export function hostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
}

/** Returns the literal IP address in a URL's host, without brackets; null for a name. */
export function readIpLiteral({ hostname }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? null : host
}

/**
 * Checks everything that needs no DNS: scheme, port, user name, numeric hosts, and internal names. The URL parser has
 * already unified decimal, octal, hexadecimal and short forms, so this function checks the URL and not its text. But
 * the service may pass the text on to an engine, so it refuses a text that other parsers read differently. `allowed`:
 * hosts with ports that the operator has named, which always pass. Null: refused.
 */
export function judgedAddress(text: string, allowed: ReadonlySet<string>): { readonly url: URL; readonly isNamed: boolean } | null {
  const url = text.length <= MAX_URL_LENGTH && !READ_DIFFERENTLY.test(text) ? URL.parse(text) : null
  if (!url || !SCHEMES.includes(url.protocol) || url.username || url.password || !url.hostname) return null
  if (allowed.has(hostAndPort(url))) return { url, isNamed: true }
  if (url.port !== '' && !PORTS.includes(url.port)) return null
  const literal = readIpLiteral(url)
  if (literal === null) return isInsideName(url.hostname) ? null : { url, isNamed: false }
  // `0127.0.0.1` is 87.0.0.1 here and in C, and 127.0.0.1 elsewhere.
  const isPlain = isIP(literal) === 6 || AUTHORITY.exec(text)?.[1] === literal
  return isPlain && isPublicAddress(literal) ? { url, isNamed: false } : null
}

/**
 * Reads comma-separated `host:port` entries.
 * @throws {Error} an entry is not of this form; the message names each
 */
export function parseEgressAllow(text: string): ReadonlySet<string> {
  const entries = text.split(',').flatMap((entry) => entry.trim() || [])
  const parsed = entries.map((entry) => {
    const port = Number(/:(\d{1,5})$/.exec(entry)?.[1])
    const url = URL.parse(`http://${entry}`)
    const isPlain = url && `${url.pathname}${url.search}${url.hash}${url.username}` === '/' && !entry.endsWith('/')
    return isPlain && port >= 1 && port <= 65_535 ? hostAndPort(url) : null
  })
  // The part before an `@` may be a password.
  const wrong = entries.filter((_, index) => parsed[index] === null).map((entry) => entry.replace(/^.*@/, '…@'))
  if (wrong.length) throw new Error(`must be host:port, or several separated by commas; these are not: ${wrong.join(', ')}`)
  return new Set(parsed.flatMap((entry) => entry ?? []))
}
