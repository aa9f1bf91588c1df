import type { FastifyInstance } from 'fastify'

/** `/healthz`: the process runs. `/readyz`: it can serve; 503 with what keeps it from that, by part. Neither needs a key. */
export function healthRoutes(app: FastifyInstance, problems: () => Promise<readonly string[]>): void {
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const found = await problems()
    return reply.code(found.length ? 503 : 200).send({ status: found.length ? 'not ready' : 'ready', problems: found })
  })
}
