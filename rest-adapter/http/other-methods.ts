import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Route } from './route.ts'

/** Responds to methods that an address does not have, and to preflights. */
export function registerOtherMethods(
  app: FastifyInstance,
  url: string,
  routes: readonly (Pick<Route, 'dialect' | 'protocolHeaders'> & { readonly operation: { readonly method: string } })[],
): void {
  const methods: readonly string[] = routes.map(({ operation }) => operation.method)
  const allowed = [...methods, ...(methods.includes('GET') && !methods.includes('HEAD') ? ['HEAD'] : []), 'OPTIONS']
  const allow = allowed.join(', ')
  const refuse = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.header('allow', allow)
    throw new KisError('method_not_allowed', `${request.method} is not allowed here. Allowed: ${allow}.`)
  }
  const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => !allowed.includes(method))
  const dialect = routes[0]?.dialect
  const config = { cors: { methods: allow }, ...(dialect && { dialect }) }
  app.route({ method: others, url, config, exposeHeadRoute: !methods.includes('HEAD'), onRequest: refuse, handler: refuse })
  app.options(url, { config }, async (_request, reply) =>
    reply
      .code(204)
      .headers({ allow, ...routes[0]?.protocolHeaders })
      .send(),
  )
}
