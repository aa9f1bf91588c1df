import type { FastifyRequest } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { RestConfig } from '../config.ts'

/** Names that always mean this machine to a browser. */
const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/
const LOOPBACK_ADDRESS = /^(::ffff:)?127\.|^::1$/

/**
 * Refuses web pages of other sites, which the browser names in `origin`, and host names of others that resolve to this
 * machine (DNS rebinding), in `host`. `host` can be checked only on the loopback interface, or where the operator has
 * named the service's hosts.
 * @throws {KisError} `permission_denied`: the page or the host name is not one of the service's
 */
export function refuseUnknownHosts({ headers, socket }: FastifyRequest, { mcpHosts }: RestConfig): void {
  const isOurs = (hostname: string | undefined) => hostname !== undefined && (LOOPBACK.test(hostname) || mcpHosts.has(hostname))
  const { origin, host } = headers
  if (origin !== undefined && !isOurs(URL.parse(origin)?.hostname)) throw unknownHost('origin', origin)
  const isJudged = mcpHosts.size > 0 || LOOPBACK_ADDRESS.test(socket.localAddress ?? '')
  if (isJudged && !isOurs(URL.parse(`http://${host}`)?.hostname)) throw unknownHost('host', host ?? '')
}

function unknownHost(header: string, value: string): KisError {
  return new KisError(
    'permission_denied',
    `The ${header} \`${value.slice(0, 200)}\` is not one of this service. If it should be, add it to \`KIS_MCP_HOSTS\`.`,
  )
}
