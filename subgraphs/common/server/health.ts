import type { FastifyInstance } from 'fastify'
import type { Log } from '../process/log.ts'

/**
 * `/healthz`: the process runs. `/readyz`: it can serve; 503 with the parts that keep it from that. Neither needs a key, and so neither tells
 * more than the names of parts, and that one is damaged, or its disk full or failing: what else is wrong, with addresses and files, stands in the log. `serves`: whether a process with these
 * problems does what it is for all the same, in part; then it is ready, and says that it is degraded. Default: none does. Whoever asks while a look is
 * under way gets its answer, so that strangers who ask without end cost the stores one look at a time.
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
    return reply.code(status === 'not ready' ? 503 : 200).send({ status, problems: partsOf(found) })
  })
}

/** Whether a request asks how the process is, which must be answered also when nothing else is. */
export function asksForHealth({ url = '' }: { readonly url?: string | undefined }): boolean {
  return /^\/(healthz|readyz)(\?|$)/.test(url)
}

/** What may be told of a part to anybody, and helps whoever operates it. */
const TOLD = ['the disk is full', 'it is damaged', 'its storage fails']

/** `document store: connect ECONNREFUSED …` → `document store`; `blob store: the disk is full: /data/…` → `blob store: the disk is full`. */
function partsOf(problems: readonly string[]): readonly string[] {
  const told = problems.map((problem) => {
    const [part, why = ''] = problem.split(': ', 2)
    return TOLD.includes(why) ? `${part}: ${why}` : part!
  })
  return [...new Set(told)]
}
