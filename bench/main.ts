import { benchChat } from './chat.ts'
import { benchEventLoop } from './event-loop.ts'
import { benchHolds } from './holds.ts'
import { benchIngestion } from './ingestion.ts'
import { benchRetrieval } from './retrieval.ts'
import type { BenchRow } from './row.ts'
import { benchSearch } from './search.ts'
import { benchSearchElasticsearch } from './search-elasticsearch.ts'
import { benchStart } from './start.ts'

/** Names that `npm run bench -- <name>…` takes, in the order of a whole run. */
const BENCHES: Readonly<Record<string, () => Promise<readonly BenchRow[]>>> = {
  chat: benchChat,
  holds: benchHolds,
  search: benchSearch,
  'search-elasticsearch': benchSearchElasticsearch,
  ingestion: benchIngestion,
  'event-loop': benchEventLoop,
  start: benchStart,
  retrieval: benchRetrieval,
}

const asked = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(BENCHES)
const unknown = asked.filter((name) => !(name in BENCHES))
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}.`)
  process.exit(2)
}
console.log('| what | measured | bar | beside |\n|---|---|---|---|')
for (const name of asked) {
  // As they come: a whole run takes some ten minutes.
  for (const { what, figure, bar, beside } of await BENCHES[name]!()) console.log(`| ${what} | ${figure} | ${bar} | ${beside} |`)
}
