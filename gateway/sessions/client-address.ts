import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isPublicAddress } from '../../subgraphs/common/egress/egress-address.ts'

/**
 * The address that a request comes from. A proxy in front of the service, which is on the same machine or network, adds
 * it at the end of `x-forwarded-for`. What others write there does not count.
 */
export function clientAddress({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string {
  const peer = socket.remoteAddress ?? ''
  if (isPublicAddress(peer)) return peer
  const last = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-1)!
    .trim()
  return isIP(last) ? last : peer
}
