import { registerHooks } from 'node:module'

// @apollo/gateway reads this when a gateway is created, and would otherwise report its environment to Apollo. Import
// this file before anything of Apollo's.
process.env.APOLLO_TELEMETRY_DISABLED = '1'

/**
 * What Apollo's packages load for such reports alone, for fetching from subgraphs itself, which our links do, for
 * composing a supergraph and for drawing one: a hundred and twenty packages, which take 25 MB and a fifth of the start.
 */
const UNUSED: ReadonlySet<string> = new Set([
  '@apollo/composition',
  '@opentelemetry/exporter-metrics-otlp-http',
  '@opentelemetry/resource-detector-alibaba-cloud',
  '@opentelemetry/resource-detector-aws',
  '@opentelemetry/resource-detector-azure',
  '@opentelemetry/resource-detector-gcp',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/semantic-conventions/incubating',
  'make-fetch-happen',
  'node-fetch',
  'ts-graphviz',
])
const USERS = /\/@apollo\/(?:gateway|query-graphs)\//
const NOTHING = new URL('./nothing.cjs', import.meta.url).href

registerHooks({
  resolve: (specifier, context, next) =>
    UNUSED.has(specifier) && USERS.test(context.parentURL ?? '')
      ? { url: NOTHING, format: 'commonjs', shortCircuit: true }
      : next(specifier, context),
})
