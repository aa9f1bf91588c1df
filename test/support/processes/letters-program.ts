import { openOwnMongoStore } from '../../../subgraphs/common/adapters/mongodb/own-store.ts'
import { systemClock } from '../../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { Opening } from '../../../subgraphs/common/process/opening.ts'
import { ADD, letters, REMOVE } from '../data/letters.ts'

/**
 * A program that knows the letters of a database in one version, and writes one every 20 ms in that shape:
 * `letters-program.ts URL DATABASE VERSION`. Tells what `/readyz` would, and ends by SIGTERM.
 */
const [url, database, version] = process.argv.slice(2)
const kinds = letters(...[ADD, REMOVE].slice(0, Number(version) - 1))
const own = async () => ({ id: 'inst_own' })
const stopping = new AbortController()
process.on('SIGTERM', () => stopping.abort())
await using opening = new Opening({
  part: 'document store',
  open: async () => (await openOwnMongoStore({ url: url!, database: database! }, own, { kinds, log: silentLog })).store,
  clock: systemClock,
  signal: stopping.signal,
})
const shapes = [{ pages: 7 }, { pages: 7, sheets: 7 }, { sheets: 7 }]
for (let i = 0; !stopping.signal.aborted; i++) {
  const problems = await opening.problems(AbortSignal.timeout(1_000))
  process.send?.({ problems })
  if (problems.length === 0) {
    const store = await opening.opened
    await store.collection({ name: 'letters', indexes: [] }).insertOne({ _id: `of_${version}_${i}`, ...shapes[Number(version) - 1] })
  }
  await systemClock.sleep(20, stopping.signal).catch(() => undefined)
}
process.disconnect?.()
