import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Span, Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'

/** Stands for the route of an address without one, because the address may contain anything. */
const NO_ROUTE = 'none'
/** Status of a request whose client left before the response started, as web servers log it. */
const CLIENT_LEFT = 499

interface Watched {
  route: string
  span: Span | undefined
}

/**
 * Reports every request of an app at its end: to the log, the metrics and the trace. Call it before the app has routes,
 * and call the returned function for each request before anything else is done.
 */
export function watchRequests(
  app: FastifyInstance,
  { isOn, metrics, tracer, requests, lines }: Telemetry,
): (request: IncomingMessage, response: ServerResponse) => void {
  if (!isOn) return () => undefined
  const watched = new WeakMap<IncomingMessage, Watched>()
  let inFlight = 0
  const gauge = metrics.gauge('kis_http_requests', () => [[inFlight]])
  app.addHook('onClose', async () => gauge[Symbol.dispose]())

  app.addHook('onRequest', (request, _reply, done) => {
    const known = watched.get(request.raw)
    if (!known) return done()
    known.route = request.is404 ? NO_ROUTE : (request.routeOptions.url ?? NO_ROUTE)
    if (!tracer.isOn) return done()
    const { traceparent } = request.headers
    known.span = tracer.start(`${request.method} ${known.route}`, {
      kind: 'server',
      begins: true,
      attributes: { 'http.request.method': request.method, 'http.route': known.route },
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    })
    known.span.within(done)
  })
  // The body is read in the context of its connection.
  if (tracer.isOn)
    app.addHook('preValidation', (request, _reply, done) => {
      const span = watched.get(request.raw)?.span
      if (span) span.within(done)
      else done()
    })

  return (request, response) => {
    const startedMs = performance.now()
    let firstByteMs: number | undefined
    const { writeHead } = response
    response.writeHead = ((...args: Parameters<typeof writeHead>) => {
      firstByteMs ??= performance.now() - startedMs
      return writeHead.apply(response, args)
    }) as typeof writeHead
    const known: Watched = { route: NO_ROUTE, span: undefined }
    watched.set(request, known)
    inFlight += 1
    response.once('close', () => {
      inFlight -= 1
      const durationMs = performance.now() - startedMs
      const requestId = String(response.getHeader('x-request-id') ?? '')
      const facts = requests.end(requestId)
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT
      const { route, span } = known
      const method = request.method ?? ''
      const hasLeft = !response.writableFinished
      metrics.add('kis_http_requests_total', 1, route, route === NO_ROUTE ? '' : method, String(status))
      metrics.observe('kis_http_request_seconds', durationMs / 1_000, route)
      if (firstByteMs !== undefined) metrics.observe('kis_http_first_byte_seconds', firstByteMs / 1_000, route)
      span?.set({ 'http.response.status_code': status, 'kis.request_id': requestId })
      span?.end(status >= 500 ? (facts?.error ?? String(status)) : undefined)
      const traceId = span?.traceId ?? ''
      lines.ended({ requestId, traceId, route, method, status, durationMs, firstByteMs: firstByteMs ?? durationMs, hasLeft, facts })
    })
  }
}
