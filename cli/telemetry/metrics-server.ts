import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PrometheusMetrics } from '../../subgraphs/common/telemetry/metrics.ts'

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
/** A scraper sends only a short request. */
const REQUEST_TIMEOUT_MS = 5_000
/** Enough for several scrapers, and a person with a browser. */
const MAX_CONNECTIONS = 32

/**
 * Serves `GET /metrics`, and nothing else, on a port of its own, so that callers of the service cannot read the
 * metrics.
 */
export async function serveMetrics(
  metrics: Pick<PrometheusMetrics, 'text'>,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS }, async (request, response) => {
    const isKnown = request.url?.split('?', 1)[0] === '/metrics'
    if (isKnown && request.method === 'GET') {
      const text = await metrics.text()
      response.writeHead(200, { 'content-type': CONTENT_TYPE }).end(text)
    } else {
      response.writeHead(isKnown ? 405 : 404).end()
    }
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new Error(`Port ${port} of ${host} cannot be opened for metrics (KIS_METRICS_PORT, KIS_METRICS_HOST): ${cause.message}`, { cause }),
      ),
    )
    server.listen(port, host, resolve)
  })
  server.unref()
  const { port: boundPort } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}/metrics`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
