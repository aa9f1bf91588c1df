import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERRORS } from '../../schema/errors.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { readSessionCookie, sessionCookie } from '../../subgraphs/common/sessions/session-cookie.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { readClaims } from './claims.ts'
import { FlowCookie } from './flow-cookie.ts'
import { Issuer, IssuerFailure } from './issuer.ts'
import type { MemberSignIn, SignInRefusal } from './member-sign-in.ts'
import type { OidcSettings } from './oidc-settings.ts'
import { toReturnPath } from './return-path.ts'

/** Billing reads and writes a few records. */
const TIMEOUT_MS = 5_000
/** Tokens of invitations and ids of organizations are shorter. */
const MAX_ID_CHARACTERS = 100

/**
 * What the sign-in page is told, as `/sign-in?error=…`. `cancelled`: the person did not agree; `expired`: the sign-in took
 * too long, or began in another browser; `issuer_unavailable`, `issuer_refused`: the issuer did not answer, or what it
 * said is wrong; `unavailable`: the service itself failed.
 */
export type SignInError = SignInRefusal | 'cancelled' | 'expired' | 'issuer_unavailable' | 'issuer_refused' | 'unavailable'

const OF_ISSUER = { cancelled: 'cancelled', unavailable: 'issuer_unavailable', refused: 'issuer_refused' } as const

export interface SignInRouteParts {
  readonly oidc: OidcSettings
  /** Seals what the browser keeps until the person comes back. */
  readonly sealed: SealedTexts
  readonly signIn: MemberSignIn
  readonly sessions: Pick<SessionStore, 'end'>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/**
 * Serves `/session/oidc`: sends a browser to the issuer, and gives it a session when it comes back. Whatever goes wrong,
 * the browser gets to the sign-in page with an error of `SignInError`.
 */
export async function serveSignIn(app: FastifyInstance, parts: SignInRouteParts): Promise<void> {
  await app.register(async (scope) => registerSignIn(scope, parts))
}

function registerSignIn(app: FastifyInstance, { oidc, sealed, signIn, sessions, clock, ids, log }: SignInRouteParts): void {
  const issuer = new Issuer(oidc, clock)
  const cookie = new FlowCookie(sealed, clock, oidc.publicUrl.startsWith('https:'))
  const fail = (reply: FastifyReply, error: SignInError) => reply.redirect(`/sign-in?error=${error}`, 303)

  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
  })
  app.setErrorHandler(async (error, _request, reply) => {
    if (error instanceof IssuerFailure) {
      log.warn({ err: error.cause ?? error }, 'the issuer of sign-ins failed')
      return fail(reply, OF_ISSUER[error.reason])
    }
    if (isOwnFault(error)) log.info({ err: error }, 'a sign-in was refused')
    else log.error({ err: error }, 'a sign-in failed')
    return fail(reply, 'unavailable')
  })

  app.get('/session/oidc', { exposeHeadRoute: false }, async (request, reply) => {
    // So that no page of others signs anybody in to an organization of its choice.
    if (!isOfOwnPage(request)) return reply.redirect('/sign-in', 303)
    const { return: requested, invitation, organization } = request.query as Readonly<Record<string, unknown>>
    const { url, ...flow } = await issuer.start()
    const begun = {
      ...flow,
      returnPath: toReturnPath(requested),
      invitation: readShort(invitation),
      organizationId: readShort(organization),
      // The browser does not send it when it comes back from another site.
      previousSession: readSessionCookie(request.headers),
    }
    return reply.header('set-cookie', cookie.write(begun)).redirect(url.href, 303)
  })

  app.get('/session/oidc/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const flow = cookie.read(request.headers)
    reply.header('set-cookie', cookie.clear())
    const query = new URLSearchParams(request.raw.url?.split('?')[1] ?? '')
    if (!flow || query.get('state') !== flow.state) return fail(reply, 'expired')
    const claims = await issuer.end(query.toString(), flow)
    const person = { issuer: String(claims.iss), subject: String(claims.sub), ...readClaims(claims, oidc) }
    const { invitation, organizationId } = flow
    const input = { ...person, invitation, organizationId, userAgent: request.headers['user-agent'] ?? null }
    const context = () => ({ requestId: ids('req'), signal: AbortSignal.timeout(TIMEOUT_MS) })
    const opened = await signIn(input, context())
    if (typeof opened === 'string') return fail(reply, opened)
    // It ends by itself, too, and its cookie is replaced.
    if (flow.previousSession) await sessions.end(flow.previousSession, context()).catch(() => undefined)
    reply.header('set-cookie', sessionCookie(request.headers, opened.token, opened.expiresAt))
    return reply.redirect(flow.returnPath, 303)
  })
}

/** Whether the person, or their browser, sent what is wrong: the service has not failed then. */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof KisError) return ERRORS[error.code].status < 500
  return ((error as { readonly statusCode?: number } | null)?.statusCode ?? 500) < 500
}

/** Whether a link or a form of the service's own pages sent the browser, or the person typed the address. */
function isOfOwnPage({ headers: { 'sec-fetch-site': site } }: FastifyRequest): boolean {
  return site === undefined || site === 'same-origin' || site === 'none'
}

function readShort(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARACTERS ? value : null
}
