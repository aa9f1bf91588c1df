import type { FastifyInstance } from 'fastify'
import type { OAuthSettings } from '../../subgraphs/common/identity/credentials.ts'
import { SCOPES } from '../../subgraphs/common/identity/principal.ts'
import type { RestDeps } from './deps.ts'
import { registerOtherMethods } from './other-methods.ts'

const METADATA = '/.well-known/oauth-protected-resource'
/** What a client of MCP has a use for: searches, and agents. */
const USEFUL_SCOPES = SCOPES.filter((scope) => scope === 'knowledge:read' || scope === 'agents')

/**
 * Tells clients of `/mcp` where they get an access token (RFC 9728). They ask at the address itself, or with the path
 * of the resource behind it.
 */
export function registerOAuthMetadata(app: FastifyInstance, { oauth }: Pick<RestDeps['config'], 'oauth'>): void {
  if (!oauth) return
  const metadata = {
    resource: oauth.resource,
    authorization_servers: [oauth.issuer],
    scopes_supported: USEFUL_SCOPES,
    bearer_methods_supported: ['header'],
  }
  for (const path of new Set([METADATA, metadataPath(oauth)])) {
    app.get(path, async () => metadata)
    registerOtherMethods(app, path, [{ method: 'GET' }])
  }
}

/** Says, beside a refused key or token, how one is sent (RFC 6750), and where a client gets a token. */
export function createChallenge(authorization: string | undefined, oauth: OAuthSettings | null): string {
  if (!oauth) return 'Bearer'
  const refused = authorization === undefined ? '' : 'error="invalid_token", '
  return `Bearer ${refused}resource_metadata="${new URL(oauth.resource).origin}${metadataPath(oauth)}"`
}

/** The path of the resource follows that of the metadata. */
function metadataPath({ resource }: OAuthSettings): string {
  const { pathname } = new URL(resource)
  return METADATA + (pathname === '/' ? '' : pathname)
}
