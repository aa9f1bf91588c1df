import type { FastifyInstance } from 'fastify'
import { type Caller, requireScope } from '../identity/principal.ts'
import type { Log } from '../process/log.ts'
import { VERSIONS } from '../process/versions.ts'

/** How long a result is cached. Anybody may request it, and each check queries all stores or parts. */
const HOLDS_MS = 500
/**
 * Longest check, so that a probe never hangs. It is longer than the time that the rest-adapter waits for a gateway that
 * waits for its parts.
 */
const MAX_CHECK_MS = 4_000

/**
 * Serves `/healthz`: the process runs, in these versions; and `/readyz`: it can serve, or 503 with the parts that
 * prevent it from serving. Neither needs a key, so both return only the names of parts, and whether a part is corrupted
 * or its disk is full or failing. All other details, such as addresses and files, are in the log. `serves`: whether a
 * process with these problems can still do part of its work. It then counts as ready, but degraded. Default: never.
 * `stopping`: aborted once the process is to end; then it is not ready, whatever it can still do. Requests share a
 * check for 0.5 s, so that unauthenticated clients cannot burden the stores.
 */
export function healthRoutes(
  app: FastifyInstance,
  problems: () => Promise<readonly string[]>,
  log: Log,
  { serves = () => false, stopping }: { serves?(problems: readonly string[]): boolean; readonly stopping?: AbortSignal } = {},
): void {
  let logged = ''
  let looking: Promise<readonly string[]> | undefined
  const check = () => {
    looking ??= inTime(problems()).finally(() => {
      setTimeout(() => {
        looking = undefined
      }, HOLDS_MS).unref()
    })
    return looking
  }
  app.get('/healthz', async () => ({ status: 'ok', ...VERSIONS }))
  app.get('/readyz', async (_request, reply) => {
    if (stopping?.aborted) return reply.code(503).send({ status: 'stopping', problems: [] })
    const found = await check()
    if (found.join() !== logged && found.length) log.warn({ problems: found }, 'not ready')
    logged = found.join()
    const status = found.length === 0 ? 'ready' : serves(found) ? 'degraded' : 'not ready'
    return reply.code(status === 'not ready' ? 503 : 200).send({ status, problems: listParts(found) })
  })
}

/** Returns the problems, or a problem that says that the check took too long. */
async function inTime(problems: Promise<readonly string[]>): Promise<readonly string[]> {
  const { promise: late, resolve } = Promise.withResolvers<readonly string[]>()
  const timer = setTimeout(() => resolve(['a part does not report its health in time']), MAX_CHECK_MS)
  return Promise.race([problems, late]).finally(() => clearTimeout(timer))
}

/** Returns whether a request is for the health of the process. It needs a response even when nothing else gets one. */
export function isHealthRequest({ url = '' }: { readonly url?: string | undefined }): boolean {
  return /^\/(healthz|readyz)(\?|$)/.test(url)
}

/** Reasons that unauthenticated clients may read, because they help the operator. */
const PUBLIC_REASONS = ['the disk is full', 'it is corrupted', 'its storage fails']

/**
 * `document store: connect ECONNREFUSED …` → `document store`; `blob store: the disk is full: /data/…` → `blob store:
 * the disk is full`.
 */
function listParts(problems: readonly string[]): readonly string[] {
  const described = problems.map((problem) => {
    const [part, why = ''] = problem.split(': ', 2)
    return PUBLIC_REASONS.includes(why) ? `${part}: ${why}` : part!
  })
  return [...new Set(described)]
}

interface PartHealth {
  readonly isReady: boolean
  /** As `<part>: <sentence>`. */
  readonly problems: readonly string[]
}

/**
 * Returns to the operator everything that `/readyz` knows; unauthenticated clients get less.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 */
export async function partHealth(problems: () => Promise<readonly string[]>, caller: Caller | null): Promise<PartHealth> {
  requireScope(caller, 'operator')
  const found = await problems()
  return { isReady: found.length === 0, problems: found }
}
