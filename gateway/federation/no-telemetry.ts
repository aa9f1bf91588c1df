import { registerHooks } from 'node:module'

// @apollo/gateway reads this when a gateway is created, and would otherwise report its environment to Apollo. Import
// this file before anything of Apollo's.
process.env.APOLLO_TELEMETRY_DISABLED = '1'

/**
 * What @apollo/gateway loads for such reports alone, and for fetching from subgraphs itself, which our links do: a
 * hundred packages, which take 20 MB and a fifth of the start.
 */
const UNUSED: ReadonlySet<string> = new Set([
  '@opentelemetry/exporter-metrics-otlp-http',
  '@opentelemetry/resource-detector-alibaba-cloud',
  '@opentelemetry/resource-detector-aws',
  '@opentelemetry/resource-detector-azure',
  '@opentelemetry/resource-detector-gcp',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/semantic-conventions/incubating',
  'make-fetch-happen',
])
const NOTHING = new URL('./nothing.cjs', import.meta.url).href

registerHooks({
  resolve: (specifier, context, next) =>
    UNUSED.has(specifier) && context.parentURL?.includes('/@apollo/gateway/')
      ? { url: NOTHING, format: 'commonjs', shortCircuit: true }
      : next(specifier, context),
})
