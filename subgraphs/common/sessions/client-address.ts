import type { IncomingMessage } from 'node:http'
import { isIP, isIPv6, type Socket } from 'node:net'
import { isPublicAddress } from '../egress/egress-address.ts'

/** Addresses of connections, cached because a connection carries many requests. */
const peers = new WeakMap<Socket, { readonly address: string; readonly isPublic: boolean }>()

/**
 * Returns the client's address of a request. A proxy in front of the service, on the same machine or network, adds it
 * at the end of `x-forwarded-for`. The service ignores what others write there.
 */
export function clientAddress({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string {
  const { address, isPublic } = peerOf(socket)
  if (isPublic) return address
  const last = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-1)!
    .trim()
  return isIP(last) ? last : address
}

function peerOf(socket: Socket): { readonly address: string; readonly isPublic: boolean } {
  const known = peers.get(socket)
  if (known) return known
  const address = socket.remoteAddress ?? ''
  const peer = { address, isPublic: isPublicAddress(address) }
  // A connection that has ended has no address.
  if (address !== '') peers.set(socket, peer)
  return peer
}

/** Returns the subscriber of an address: in IPv6, a subscriber has a whole network of 64 bits. */
export function subscriberOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=.*\.)/i, '')
  return isIPv6(plain) ? networkOf(plain) : plain
}

/** Returns the first 64 bits in a single spelling: `::` stands for as many zeros as are missing. */
function networkOf(address: string): string {
  const [front, back] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = back ? Array<string>(Math.max(0, 8 - front!.length - back.length)).fill('0') : []
  const network = [...front!, ...zeros, ...(back ?? [])].slice(0, 4)
  return network.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}
