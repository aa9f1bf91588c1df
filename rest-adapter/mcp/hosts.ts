import type { FastifyRequest } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { RestConfig } from '../config.ts'

/** What browsers call this machine, and nobody else can be called. */
const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/
const LOOPBACK_ADDRESS = /^(::ffff:)?127\.|^::1$/

/**
 * Refuses pages of other sites, which a browser names in `origin`, and names of others that lead here (DNS rebinding), in `host`. Only what
 * comes by this machine's own interface or where the operator has named the service's hosts can be judged by the latter.
 * @throws {KisError} `permission_denied`.
 */
export function refuseForeignHosts({ headers, socket }: FastifyRequest, { mcpHosts }: RestConfig): void {
  const isOurs = (hostname: string | undefined) => hostname !== undefined && (LOOPBACK.test(hostname) || mcpHosts.has(hostname))
  const { origin, host } = headers
  if (origin !== undefined && !isOurs(URL.parse(origin)?.hostname)) throw foreign('origin', origin)
  const isJudged = mcpHosts.size > 0 || LOOPBACK_ADDRESS.test(socket.localAddress ?? '')
  if (isJudged && !isOurs(URL.parse(`http://${host}`)?.hostname)) throw foreign('host', host ?? '')
}

function foreign(header: string, value: string): KisError {
  return new KisError(
    'permission_denied',
    `The ${header} \`${value.slice(0, 200)}\` is not one of this service. Name it in \`KIS_MCP_HOSTS\`.`,
  )
}
