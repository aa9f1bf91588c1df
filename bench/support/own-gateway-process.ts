import fastify from 'fastify'
import { remoteLink } from '../../cli/links/remote-link.ts'
import { createGateway, type GatewayOptions } from '../../gateway/main.ts'
import { bytePaths } from '../../subgraphs/common/bytes/byte-paths.ts'
import { InvalidApiKey } from '../../subgraphs/common/errors.ts'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Link } from '../../subgraphs/common/link/link.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { LoadShedder } from '../../subgraphs/common/server/admission/load-shedder.ts'
import { APP_OPTIONS, listen } from '../../subgraphs/common/server/listen.ts'
import { Origins } from '../../subgraphs/common/server/origins.ts'
import { QueueWatch } from '../../subgraphs/common/server/queue-watch.ts'

/**
 * Our gateway as the service runs it, with keys, limits and its links over HTTP, in front of subgraphs that are not
 * ours. Expects the supergraph as its argument, and sends its address to the process that started it.
 */
const supergraphSdl = process.argv[2]!
const MAX_BODY_BYTES = 1024 * 1024

const principal: Principal = {
  organizationId: 'org_1',
  apiKeyId: 'key_1',
  scopes: ['inference'],
  modelAllowlist: null,
  residencyPolicy: 'unrestricted',
  revision: 0,
  ancestors: [],
  rotations: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  plan: { code: 'p', storageBytes: null, vectors: null, maxFileBytes: 1, requestsPerMinute: null, tokensPerMinute: null, concurrency: 64 },
}

const links = Object.fromEntries(
  [...supergraphSdl.matchAll(/@join__graph\(name: "([^"]+)", url: "([^"]+)"\)/g)].map(([, name, url]) => [
    name!,
    remoteLink({
      urls: [new URL(url!).origin],
      what: name!,
      // The header is as long as with the token of a principal.
      authorization: async () => `Bearer ${'x'.repeat(600)}`,
      socketKey: () => '',
    }),
  ]),
)
const bodies = new LargeBodies({ largestBytes: MAX_BODY_BYTES })
const gateway = await createGateway({
  supergraphSdl,
  // The gateway accepts any names; its type has those of our subgraphs.
  links: links as Record<string, Link> as GatewayOptions['links'],
  bytePaths: bytePaths(systemClock, new Uint8Array(32)),
  authenticate: async () => principal,
  sessions: {
    open: async () => {
      throw new InvalidApiKey()
    },
    end: async () => undefined,
  },
  loadShedder: new LoadShedder(new QueueWatch(silentLog)),
  clock: systemClock,
  log: silentLog,
  config: {
    introspection: true,
    maxBodyBytes: MAX_BODY_BYTES,
    trustedDocuments: new Map(),
    trustedDocumentsOnly: false,
    countNodes: () => 10_000,
    origins: new Origins(),
    oauth: null,
  },
  bodies,
})
const app = fastify(APP_OPTIONS)
const parts = await gateway.register(app)
const { url } = await listen(
  app,
  { host: '127.0.0.1', port: 0, clock: systemClock, drainMs: 0, hasPeers: false, admit: gateway.admit },
  parts,
)
process.send!(`${url}/graphql`)
process.on('disconnect', () => process.exit())
