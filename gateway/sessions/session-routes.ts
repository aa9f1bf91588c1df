import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERRORS } from '../../schema/errors.ts'
import { InvalidApiKey, KisError } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { checkJsonSize } from '../../subgraphs/common/server/bodies/limited-json.ts'
import { clientAddress } from '../../subgraphs/common/sessions/client-address.ts'
import { isSameOrigin } from '../../subgraphs/common/sessions/own-origin.ts'
import { readSessionCookie, sessionCookie } from '../../subgraphs/common/sessions/session-cookie.ts'
import { sizeText } from '../../subgraphs/common/sizes.ts'
import type { Authenticator } from '../keys/authenticate.ts'
import type { Mask } from '../mask.ts'
import type { SessionStore } from './session-store.ts'
import { SignInAttempts } from './sign-in-attempts.ts'

/** Bytes of a body, which holds one key of 45 characters. */
const MAX_BODY_BYTES = 4_096
/** Limit of a call to billing, which reads and writes a few records. */
const TIMEOUT_MS = 5_000

interface SessionRouteParts {
  readonly sessions: SessionStore
  readonly authenticator: Pick<Authenticator, 'evict'>
  /** The provider by which people sign in. Null: there is none. */
  readonly oidc: { readonly name: string } | null
  readonly mask: Mask
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** Serves `/session`: pages of the service itself exchange a key for a session, and end the session. */
export async function serveSessions(app: FastifyInstance, parts: SessionRouteParts): Promise<void> {
  await app.register(async (scope) => registerSessions(scope, parts))
}

function registerSessions(app: FastifyInstance, { sessions, authenticator, oidc, mask, clock, ids, log }: SessionRouteParts): void {
  const attempts = new SignInAttempts(clock)
  const requestIds = new WeakMap<FastifyRequest, string>()
  const contextOf = (request: FastifyRequest) => ({ requestId: requestIds.get(request)!, signal: AbortSignal.timeout(TIMEOUT_MS) })
  const end = async (request: FastifyRequest) => {
    const token = readSessionCookie(request.headers)
    if (token === null) return
    await sessions.end(token, contextOf(request))
    authenticator.evict(token)
  }

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: MAX_BODY_BYTES }, (_request, text, done) => {
    try {
      checkJsonSize(text as string)
      done(null, text === '' ? undefined : JSON.parse(text as string))
    } catch (error) {
      done(error instanceof KisError ? error : new KisError('invalid_request', 'The body is not valid JSON.'))
    }
  })
  app.addHook('onRequest', async (request, reply) => {
    const id = ids('req')
    requestIds.set(request, id)
    reply.headers({ 'x-request-id': id, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    if (request.method !== 'GET' && request.method !== 'HEAD' && !isSameOrigin(request.headers))
      throw new KisError(
        'permission_denied',
        'Only pages of this service can sign in or out here. Programs send their key as `Authorization: Bearer <API_KEY>`.',
      )
  })
  app.setErrorHandler(async (thrown, request, reply) => {
    const error = toKisError(thrown)
    const requestId = requestIds.get(request) ?? ''
    const { message } = mask(error, requestId)
    if (error.code === 'internal') log.error({ requestId, err: thrown }, 'a session request failed')
    if (error.retryAfterMs !== null) reply.header('retry-after', Math.ceil(error.retryAfterMs / 1_000))
    const { status, type } = ERRORS[error.code]
    return reply
      .removeHeader('connection')
      .code(status)
      .send({ error: { message, type, param: error.param, code: error.code } })
  })

  app.get('/session/options', async () => ({ oidc: oidc && { name: oidc.name } }))
  app.post('/session', async (request, reply) => {
    const { api_key: apiKey } = (request.body ?? {}) as { readonly api_key?: unknown }
    if (typeof apiKey !== 'string')
      throw new KisError('missing_required_parameter', 'Send `{"api_key": "…"}` as JSON.', { param: 'api_key' })
    const opened = await attempts.attempt(clientAddress(request.raw), () =>
      sessions.open(apiKey.trim(), request.headers['user-agent'] ?? null, contextOf(request)),
    )
    // The browser drops its previous session.
    await end(request).catch(() => undefined)
    return sendNewSession(request, reply, opened)
  })
  app.delete('/session', async (request, reply) => {
    await end(request)
    return reply.code(204).header('set-cookie', sessionCookie(request.headers, null)).send()
  })
}

/** Sends the cookie of a new session. */
function sendNewSession(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { id, token, expiresAt }: Awaited<ReturnType<SessionStore['open']>>,
) {
  return reply
    .code(201)
    .header('set-cookie', sessionCookie(headers, token, expiresAt))
    .send({ id, expiresAt: expiresAt.toISOString() })
}

function toKisError(thrown: unknown): KisError {
  if (thrown instanceof KisError) return thrown.code === 'invalid_api_key' ? wrongKey() : thrown
  const { statusCode = 500 } = thrown as { readonly statusCode?: number }
  if (statusCode === 413) return new KisError('payload_too_large', `The body has more than ${sizeText(MAX_BODY_BYTES)}.`)
  if (statusCode < 500) return new KisError('invalid_request', 'Send the body as `application/json`.')
  return new KisError('internal', 'The service failed to process the request.', { cause: thrown })
}

/** The error is the same for every reason. */
function wrongKey(): KisError {
  return new KisError(
    new InvalidApiKey().code,
    'This API key does not work. Check that it is complete, was not revoked and has not expired.',
  )
}
