import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { DocsTable } from '../../support/docs/docs-table.ts'
import { ELASTICSEARCH } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import type { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { soaking } from '../../support/soak.ts'
import { type LinkName, linkNames, type Parts, type RoleName, roleNames, startParts } from './parts.ts'
import { Probes, type Seen } from './probes.ts'

const LATENCY_MS = 500
const LOST_MS = 60_000
const HEALS_MS = 120_000
/** A hold that nobody settles lasts 45 s. */
const HOLDS_END_MS = 120_000
/** Upper ends of how long it took until all was well, in seconds. */
const HEALED_WITHIN = [2, 5, 10, 20, 40, 80]

const HEAD = '| where | fault | a chat | a stream under way | a run of an agent | a read | a search | an upload | charged | well again |'

interface Fault {
  readonly name: string
  /** What a run that is no soak makes. */
  readonly isQuick: boolean
  start(parts: Parts): unknown
  end(parts: Parts): unknown
}

const NETWORK: Readonly<Record<string, (proxy: TcpProxy) => unknown>> = {
  '500 ms each way': (proxy) => proxy.slow(LATENCY_MS),
  cut: (proxy) => proxy.stop(),
  'half-open': (proxy) => proxy.halfOpen(),
  blackhole: (proxy) => proxy.freeze(),
}
/** One of each kind of fault, at each kind of part. All others are made by `npm run soak`. */
const QUICK: readonly string[] = [
  'rest-adapter, gateway: blackhole',
  'gateway, billing: 500 ms each way',
  'inference, vendor: blackhole',
  'billing, MongoDB: half-open',
  'knowledge, Elasticsearch: cut',
  'gateway: killed',
  'knowledge: stopped',
]

function onLinks(where: string, links: readonly LinkName[], name: string): Fault & { readonly where: string } {
  const all = (parts: Parts, does: (proxy: TcpProxy) => unknown) => Promise.all(links.flatMap((link) => parts.proxies(link)).map(does))
  const isLong = !(name in NETWORK)
  return {
    where,
    name,
    isQuick: QUICK.includes(`${where}: ${name}`),
    start: (parts) => all(parts, NETWORK[name] ?? NETWORK.cut!),
    end: async (parts) => {
      if (isLong) await sleep(LOST_MS)
      await all(parts, (proxy) => proxy.heal())
    },
  }
}

function onRole(role: RoleName, name: 'killed' | 'stopped'): Fault & { readonly where: string } {
  const theProcess = ({ service }: Parts) => service.processes.get(`${role}-1`)!
  const isQuick = QUICK.includes(`${role}: ${name}`)
  if (name === 'killed')
    return {
      where: role,
      name,
      isQuick,
      start: (parts) => theProcess(parts).end('SIGKILL'),
      end: ({ service }) => service.restart(`${role}-1`),
    }
  return {
    where: role,
    name,
    isQuick,
    start: (parts) => process.kill(theProcess(parts).pid, 'SIGSTOP'),
    end: (parts) => process.kill(theProcess(parts).pid, 'SIGCONT'),
  }
}

const FAULTS = [
  ...linkNames.flatMap((link) => Object.keys(NETWORK).map((name) => onLinks(link, [link], name))),
  ...roleNames.flatMap((role) => (['killed', 'stopped'] as const).map((name) => onRole(role, name))),
  onLinks('all, MongoDB', ['billing, MongoDB', 'knowledge, MongoDB', 'inference, MongoDB'], 'lost for 60 s'),
  onLinks('knowledge, Elasticsearch', ['knowledge, Elasticsearch'], 'lost for 60 s'),
].filter(({ isQuick }) => isQuick || soaking)

await onEngine('KIS_TEST_MONGODB_URL', 'Faults of the parts', () =>
  onEngine(ELASTICSEARCH, 'Faults of the parts', () => {
    describe('Faults of the parts', () => {
      // How long it took depends on the machine.
      const table = new DocsTable('test/e2e/faults/faults.md', HEAD, (row) => row.replace(/\| [^|]+\|$/, ''))
      const created: {
        readonly where: string
        readonly name: string
        readonly probes: Probes
        readonly seen: Seen
        readonly well: string
      }[] = []
      let parts: Parts
      beforeAll(async () => {
        parts = await startParts()
      }, 240_000)
      afterAll(() => parts?.[Symbol.asyncDispose](), 120_000)

      it.each(FAULTS)(
        'are recovered automatically, without loss of acknowledged writes: $where: $name',
        async ({ where, name, start, end }) => {
          const probes = await Probes.create(parts, `${where}: ${name}`)
          let seen: Seen
          try {
            seen = await probes.during(async () => void (await start(parts)))
          } finally {
            await end(parts)
          }
          const endedAt = performance.now()
          await eventually(() => probes.isWell(), HEALS_MS)
          const seconds = (performance.now() - endedAt) / 1_000
          await probes.documentsAreReady()
          const within = HEALED_WITHIN.find((each) => seconds <= each)
          created.push({ where, name, probes, seen, well: within ? `within ${within} s` : 'later' })
        },
        400_000,
      )

      it('leave no hold, charge no call twice, and match faults.md', async () => {
        for (const { where, name, probes, seen, well } of created) {
          await eventually(() => probes.holdsNothing(), HOLDS_END_MS)
          table.note(where, name, [seen.chat, seen.stream, seen.run, seen.read, seen.search, seen.upload, await probes.charged(), well])
        }
        table.check()
      }, 400_000)
    })
  }),
)
