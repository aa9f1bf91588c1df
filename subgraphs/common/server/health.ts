import type { FastifyInstance } from 'fastify'
import type { Log } from '../process/log.ts'

/**
 * Serves `/healthz`: the process runs; and `/readyz`: it can serve, or 503 with the parts that keep it from serving.
 * Neither needs a key, so both tell no more than the names of parts, and that one is damaged, or its disk is full or
 * failing. All else, such as addresses and files, is in the log. `serves`: whether a process with these problems can
 * still do part of its work. It then counts as ready, but degraded. Default: never. Concurrent requests share one
 * check, so that strangers cannot burden the stores.
 */
export function healthRoutes(
  app: FastifyInstance,
  problems: () => Promise<readonly string[]>,
  log: Log,
  serves: (problems: readonly string[]) => boolean = () => false,
): void {
  let logged = ''
  let looking: Promise<readonly string[]> | undefined
  const look = () => {
    looking ??= problems().finally(() => {
      looking = undefined
    })
    return looking
  }
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const found = await look()
    if (found.join() !== logged && found.length) log.warn({ problems: found }, 'not ready')
    logged = found.join()
    const status = found.length === 0 ? 'ready' : serves(found) ? 'degraded' : 'not ready'
    return reply.code(status === 'not ready' ? 503 : 200).send({ status, problems: listParts(found) })
  })
}

/** Whether a request asks for the health of the process, which must be answered even when nothing else is. */
export function asksForHealth({ url = '' }: { readonly url?: string | undefined }): boolean {
  return /^\/(healthz|readyz)(\?|$)/.test(url)
}

/** What anybody may know about a part, and helps the operator. */
const TOLD = ['the disk is full', 'it is damaged', 'its storage fails']

/**
 * `document store: connect ECONNREFUSED …` → `document store`; `blob store: the disk is full: /data/…` → `blob store:
 * the disk is full`.
 */
function listParts(problems: readonly string[]): readonly string[] {
  const told = problems.map((problem) => {
    const [part, why = ''] = problem.split(': ', 2)
    return TOLD.includes(why) ? `${part}: ${why}` : part!
  })
  return [...new Set(told)]
}
