import { benchChat } from './chat.ts'
import { benchEventLoop } from './event-loop.ts'
import { benchFlood } from './flood.ts'
import { benchGraphql, benchGraphqlService } from './graphql.ts'
import { benchGrowth } from './growth.ts'
import { benchHolds } from './holds.ts'
import { benchIngestion } from './ingestion.ts'
import { benchNeighbours } from './neighbours.ts'
import { benchObservability } from './observability.ts'
import { benchOverload } from './overload.ts'
import { benchOverspend } from './overspend.ts'
import { PEERS_HAVE_LESS } from './peers.ts'
import { benchRetrieval } from './retrieval.ts'
import type { BenchOptions, BenchRow } from './row.ts'
import { benchSearch } from './search.ts'
import { benchSearchElasticsearch } from './search-elasticsearch.ts'
import { benchSlowStreams } from './slow-streams.ts'
import { benchSoak } from './soak.ts'
import { benchStart } from './start.ts'
import { killDescendants } from './support/process-tree.ts'
import { benchPrompts } from './support/prompts.ts'
import { benchWorstCase } from './worst-case.ts'

/** Names for `npm run bench -- <name>…`, in the order of a whole run. */
const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<readonly BenchRow[]>>> = {
  chat: benchChat,
  prompts: benchPrompts,
  graphql: () => benchGraphql(),
  'graphql-service': () => benchGraphqlService(),
  'slow-streams': benchSlowStreams,
  observability: () => benchObservability(),
  overload: () => benchOverload(),
  neighbours: benchNeighbours,
  flood: () => benchFlood(),
  'worst-case': () => benchWorstCase(),
  overspend: benchOverspend,
  holds: benchHolds,
  search: () => benchSearch(),
  'search-elasticsearch': benchSearchElasticsearch,
  ingestion: benchIngestion,
  'event-loop': benchEventLoop,
  start: benchStart,
  retrieval: benchRetrieval,
  growth: benchGrowth,
  soak: benchSoak,
}
const PEERS = '--peers'
const SHORT = '--short'
const ONLY = '--only='
const LIMIT = '--limit='

const args = process.argv.slice(2)
const peers = args.includes(PEERS)
const short = args.includes(SHORT)
const readValue = (option: string) => args.find((one) => one.startsWith(option))?.slice(option.length)
const only = readValue(ONLY)
const limit = readValue(LIMIT) === undefined ? undefined : Number(readValue(LIMIT))
const named = args.filter((name) => ![PEERS, SHORT].includes(name) && ![ONLY, LIMIT].some((option) => name.startsWith(option)))
const selected = named.length > 0 ? named : Object.keys(BENCHES)
const unknown = selected.filter((name) => !(name in BENCHES))
if (unknown.length > 0) {
  console.error(
    `There is no ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}, ${PEERS} for LiteLLM and Portkey beside, ${SHORT}, ${ONLY}… and ${LIMIT}… for neighbours.`,
  )
  process.exit(2)
}
// On a signal, end every child process. Otherwise each measurement ends its own.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killDescendants()
    process.exit(1)
  })
}
if (peers) console.log(`${PEERS_HAVE_LESS}\n`)
console.log('| what | measured | bar | beside |\n|---|---|---|---|')
for (const name of selected) {
  // Rows are printed one by one, because a whole run takes about ten minutes.
  for (const { what, figure, target, beside } of await BENCHES[name]!({ peers, short, only, limit }))
    console.log(`| ${what} | ${figure} | ${target} | ${beside} |`)
}
