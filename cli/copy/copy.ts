import { checkLedger, type LedgerVerification, sumWallets } from '../../subgraphs/billing/stored.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { copyBlobs, copyIndex, emptyIndex, markNewTerms, refuseLostVectors } from '../../subgraphs/knowledge/stored.ts'
import type { Servers } from '../settings/servers.ts'
import { compareStores, isEqual, toTable } from './compare.ts'
import { fillDocuments, pruneDocuments } from './documents.ts'
import { Progress } from './progress.ts'
import { openSourceFolder, openSourceServers } from './source.ts'
import { listCollections, type Stores } from './stores.ts'
import { openTargetFolder, openTargetServers, type Target } from './target.ts'

export interface CopyOptions {
  /** The side that is not on servers. */
  readonly dataDirectory: string
  readonly direction: 'to servers' | 'from servers'
  readonly servers: Servers
  readonly secret: Uint8Array
  readonly log: Log
  readonly say: (line: string) => void
  /** Checks the ledger of the target, whose pages `read` gives, and prints what it finds. False: it breaks its own rules. */
  readonly judge: (read: (after: string | null) => Promise<LedgerVerification>) => Promise<boolean>
}

/** The passages of the index are of these. If one has changed since they were copied, they are copied anew. */
const BEHIND_THE_INDEX: readonly string[] = ['knowledge collections', 'knowledge documents']

/**
 * Copies all data of a stopped installation between a data folder and MongoDB with Elasticsearch, compares both sides,
 * and lets the service start on the target. If it is interrupted, call it again: what is there and equal stays. False:
 * the copy is complete, but the ledger, which is the same on both sides, breaks its own rules.
 * @throws {Error} the source is in use, not whole or changes meanwhile, the target has other data, or the two differ
 */
export async function copyInstallation({ dataDirectory, direction, servers, secret, log, say, judge }: CopyOptions): Promise<boolean> {
  let finish: Target['finish']
  let isSound: boolean
  {
    const sourceOptions = { secret, log, say }
    await using source = await (direction === 'to servers'
      ? openSourceFolder(dataDirectory, sourceOptions)
      : openSourceServers(servers, sourceOptions))
    // Before the target has anything.
    await refuseLostVectors(source.knowledge)
    const targetOptions = { installation: source.installation, log }
    await using target = await (direction === 'to servers'
      ? openTargetServers(servers, targetOptions)
      : openTargetFolder(dataDirectory, targetOptions))
    const progress = new Progress(say)
    if (target.isRepeated) say('An earlier copy into the target has not ended; this one goes on with it.')
    await moveAll(source, target, progress)
    const { rows, problems } = await compareStores(source, target, progress)
    for (const line of toTable(rows)) say(line)
    await source.refuseUsed()
    const different = rows.filter((row) => !isEqual(row)).map(({ what }) => `${what} differ`)
    if (different.length + problems.length > 0)
      throw new Error(`The target is not equal to the source: ${[...different, ...problems].join('; ')}. Run the same command again.`)
    isSound = await judgeLedger(target, { judge, say })
    await markNewTerms(target.documents.knowledge)
    finish = target.finish
  }
  await finish()
  return isSound
}

async function moveAll(source: Stores, target: Target, progress: Progress): Promise<void> {
  const targets = new Map(listCollections(target).map((each) => [`${each.subgraph} ${each.name}`, each.collection]))
  let isIndexEmpty = false
  for (const { subgraph, name, collection } of target.isRepeated ? listCollections(source) : []) {
    const what = `${subgraph} ${name}`
    await pruneDocuments(collection, targets.get(what)!, async () => {
      if (isIndexEmpty || !BEHIND_THE_INDEX.includes(what)) return
      await emptyIndex(target.knowledge.index)
      isIndexEmpty = true
    })
  }
  for (const { subgraph, name, collection } of listCollections(source)) {
    const what = `${subgraph} ${name}`
    await progress.of(what, (moved) => fillDocuments(collection, targets.get(what)!, moved))
  }
  await progress.of('contents of files and texts', (moved) => copyBlobs(source.knowledge.blobs, target.knowledge.blobs, moved))
  await progress.of('passages of the index', (moved) => copyIndex(source.knowledge, target.knowledge, moved))
}

async function judgeLedger({ documents }: Stores, { judge, say }: Pick<CopyOptions, 'judge' | 'say'>): Promise<boolean> {
  const isSound = await judge((after) => checkLedger(documents.billing, after))
  const { wallets, available, held } = await sumWallets(documents.billing)
  say(`wallets: ${wallets}, with ${usd(available)} available and ${usd(held)} held`)
  return isSound
}

function usd(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(10, '0')
  return `${nano < 0n ? '-' : ''}$${digits.slice(0, -9)}.${digits.slice(-9)}`
}
