import type { FastifyInstance } from 'fastify'
import type { OAuthSettings } from '../../subgraphs/common/identity/credentials.ts'
import { SCOPES } from '../../subgraphs/common/identity/principal.ts'
import type { RestDeps } from './deps.ts'
import { registerOtherMethods } from './other-methods.ts'

const METADATA = '/.well-known/oauth-protected-resource'
/** Scopes that are useful to an MCP client: searches and agents. */
const USEFUL_SCOPES = SCOPES.filter((scope) => scope === 'knowledge:read' || scope === 'agents')

/**
 * Serves the metadata that tells clients of `/mcp` where to get an access token (RFC 9728). Clients request it at the
 * well-known address itself, or with the path of the resource appended.
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
    registerOtherMethods(app, path, [{ operation: { method: 'GET' } }])
  }
}

/** Returns the challenge for a refused key or token: how to send one (RFC 6750), and where to get a token. */
export function createChallenge(authorization: string | undefined, oauth: OAuthSettings | null): string {
  if (!oauth) return 'Bearer'
  const refused = authorization === undefined ? '' : 'error="invalid_token", '
  return `Bearer ${refused}resource_metadata="${new URL(oauth.resource).origin}${metadataPath(oauth)}"`
}

/** Returns the metadata's path, followed by the path of the resource. */
function metadataPath({ resource }: OAuthSettings): string {
  const { pathname } = new URL(resource)
  return METADATA + (pathname === '/' ? '' : pathname)
}
