// Loads everything that a start may load, and keeps it compiled. The image's build runs this: code that does not load
// ends it.
import { keepCompiledCode } from './compiled-code.js'

keepCompiledCode()
for (const file of [
  './npm-parent.ts',
  './main.ts',
  './start.ts',
  '../gateway/main.ts',
  '../gateway/apollo-over-http.ts',
  '../gateway/keys/issued-tokens.ts',
  '../gateway/sign-in/sign-in-routes.ts',
  '../portal/server/portal.ts',
  '../rest-adapter/main.ts',
  '../rest-adapter/mcp/answer.ts',
  '../rest-adapter/uploads/tus-server.ts',
  '../subgraphs/billing/main.ts',
  '../subgraphs/inference/main.ts',
  '../subgraphs/inference/adapters/mcp/connection.ts',
  '../subgraphs/knowledge/main.ts',
  '../subgraphs/common/server/serve-subgraph.ts',
  '../subgraphs/common/telemetry/open-tracer.ts',
  '../subgraphs/common/adapters/mongodb/claimed/claimed-store.ts',
  '../subgraphs/knowledge/adapters/mongodb/blob-store.ts',
  '../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts',
])
  await import(file)
