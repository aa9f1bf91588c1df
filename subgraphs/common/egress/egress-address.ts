import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

const SCHEMES = ['http:', 'https:']
const PORTS = ['80', '443']
/** Signed addresses of object stores have some 2,000 characters. */
export const MAX_URL_LENGTH = 8_192
/** What this parser drops or reads as a slash, and others do not: `http://public.test\@127.0.0.1` has another host for many of them. */
const READ_DIFFERENTLY = /[\\\u0000-\u001f\u007f]/
const AUTHORITY = /^[^/]*\/\/([^/?#:]*)/
/** Where IPv6 hosts of the internet live (RFC 4291, section 2.4). Outside lie forms that hold an IPv4 address, such as `::127.0.0.1`. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
/** Public by number, but part of every machine's inside: Azure's platform address, with DNS, DHCP and the credentials of the guest agent. */
const INSIDE = [ipaddr.IPv4.parseCIDR('168.63.129.16/32')]

/**
 * Ends of names that lead inside: kept for a machine or its network (RFC 6761; RFC 6762 with its appendix G; RFC 8375 and its like below `arpa`;
 * ICANN's choice of 2024, `internal`, where clouds have their metadata), or given to services by Kubernetes, Consul and routers.
 */
const INSIDE_NAMES: ReadonlySet<string> = new Set(
  'localhost localdomain local internal intranet private corp home lan arpa svc consul docker'.split(' '),
)

/** Whether a URL's host is a name that no host of the public internet has. One without a dot is completed by the search list of who looks it up. */
function isInsideName(hostname: string): boolean {
  const labels = hostname.replace(/\.$/, '').split('.')
  return labels.length < 2 || labels.includes('') || INSIDE_NAMES.has(labels.at(-1)!)
}

/** Whether the address, written as the system or `new URL` writes it, is one of a host on the public internet. */
export function isPublicAddress(text: string): boolean {
  // ipaddr.js reads octal and short forms as well, and not all as a connection does.
  if (isIP(text) === 0) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4'
    ? !INSIDE.some((range) => address.match(range))
    : address.match(GLOBAL_IPV6) && (address as ipaddr.IPv6).zoneId === undefined
}

/** The host and port of an address, as `KIS_EGRESS_ALLOW` lists them. */
export function hostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
}

/** The literal address in a URL's host, without brackets; null for a name. */
export function literalOf({ hostname }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? null : host
}

/**
 * Judges what can be told without a look at DNS: scheme, port, user name, a host that is a number, and names that lead inside. The URL parser has folded decimal,
 * octal, hexadecimal and short forms into one by then, which is why this looks at the URL and not at its text; but an address
 * may be handed to an engine, so a text that other parsers read as another host is refused. `allowed`: hosts with ports that the operator has
 * named, whatever they are. Null: refused.
 */
export function judgedAddress(text: string, allowed: ReadonlySet<string>): { readonly url: URL; readonly isNamed: boolean } | null {
  const url = text.length <= MAX_URL_LENGTH && !READ_DIFFERENTLY.test(text) ? URL.parse(text) : null
  if (!url || !SCHEMES.includes(url.protocol) || url.username || url.password || !url.hostname) return null
  if (allowed.has(hostAndPort(url))) return { url, isNamed: true }
  if (url.port !== '' && !PORTS.includes(url.port)) return null
  const literal = literalOf(url)
  if (literal === null) return isInsideName(url.hostname) ? null : { url, isNamed: false }
  // `0127.0.0.1` is 87.0.0.1 here and in C, and 127.0.0.1 elsewhere.
  const isPlain = isIP(literal) === 6 || AUTHORITY.exec(text)?.[1] === literal
  return isPlain && isPublicAddress(literal) ? { url, isNamed: false } : null
}

/** `host:port`, several with commas between them. @throws {Error} names every entry that is neither. */
export function parseEgressAllow(text: string): ReadonlySet<string> {
  const entries = text.split(',').flatMap((entry) => entry.trim() || [])
  const parsed = entries.map((entry) => {
    const port = Number(/:(\d{1,5})$/.exec(entry)?.[1])
    const url = URL.parse(`http://${entry}`)
    const isPlain = url && `${url.pathname}${url.search}${url.hash}${url.username}` === '/' && !entry.endsWith('/')
    return isPlain && port >= 1 && port <= 65_535 ? hostAndPort(url) : null
  })
  // What stands before an `@` may be a password.
  const wrong = entries.filter((_, index) => parsed[index] === null).map((entry) => entry.replace(/^.*@/, '…@'))
  if (wrong.length) throw new Error(`must be host:port, or several with commas between them; these are not: ${wrong.join(', ')}`)
  return new Set(parsed.flatMap((entry) => entry ?? []))
}
