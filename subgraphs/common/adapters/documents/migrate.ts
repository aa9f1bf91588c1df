import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { type AnyDocument, currentVersion, type Kind, migrated } from './kinds.ts'

/** How often the log says how far a migration is. */
const LOG_EVERY_MS = 5_000

/** What a store says of the documents of a kind. Absent: all are of version 1. */
export interface KindRecord {
  readonly version: number
  /** The earliest version of a program that can serve them. Absent: `version`. */
  readonly oldestProgram?: number
}

/** Programs that know less of a kind, and may have written documents since it was migrated last. */
export interface EarlierPrograms {
  /** The earliest version that one of them knows. */
  readonly oldest: number
  readonly areRunning: boolean
  /** Those that run stay known when they have ended. */
  readonly staysRegistered: boolean
  /** Forgets those that had ended. */
  purge(): Promise<void>
}

/** What the runner needs of a store. */
export interface MigratedStore {
  /** For the operator: its file or database. */
  readonly name: string
  /**
   * No other process migrates the store meanwhile.
   * @throws {Unfit} another one does
   */
  alone(run: () => Promise<void>): Promise<void>
  records(): Promise<ReadonlyMap<string, KindRecord>>
  record(kind: string, record: KindRecord): Promise<void>
  /** Null: there are none. */
  earlierPrograms(kind: string, version: number): Promise<EarlierPrograms | null>
  /** About how many documents there are. */
  count(kind: string): Promise<number>
  /** Converts each document, and tells how many are done. A document that another program changes meanwhile is read again. */
  convert(kind: string, convert: (document: AnyDocument) => AnyDocument, report: (done: number) => void): Promise<void>
}

/**
 * Brings all documents to the version of this program, also those that programs of earlier versions have written since,
 * once they have ended. Interrupted at any moment, it does the rest when it is called again.
 * @throws {Error} the store has documents of a newer version
 * @throws {Unfit} another process migrates, or programs of an earlier version must end first
 */
export async function migrate(store: MigratedStore, kinds: readonly Kind[], log: Log): Promise<void> {
  const records = await store.records()
  const due: Kind[] = []
  for (const kind of kinds) {
    const { version, oldestProgram } = recordOf(records, kind)
    const current = currentVersion(kind)
    if (oldestProgram > current)
      throw new Error(
        `${store.name} has documents of the kind ${kind.name} in version ${oldestProgram}; this program knows ${current}. Start a newer version of the program.`,
      )
    const earlier = kind.migrations.length > 0 ? await store.earlierPrograms(kind.name, current) : null
    if (version < current || (earlier && !earlier.areRunning)) due.push(kind)
  }
  if (due.length === 0) return
  await store.alone(async () => {
    for (const kind of due) await migrateKind(store, kind, log)
  })
}

async function migrateKind(store: MigratedStore, kind: Kind, log: Log): Promise<void> {
  const to = currentVersion(kind)
  const { version, oldestProgram } = recordOf(await store.records(), kind)
  const earlier = await store.earlierPrograms(kind.name, to)
  // Another process was faster.
  if (version > to || (version === to && (!earlier || earlier.areRunning))) return
  const isAdditive = kind.migrations.slice(version - 1).every((migration) => migration.isAdditive)
  refuseBeside(earlier, { store, kind, isAdditive })
  if (!isAdditive) {
    // Whoever starts from here on reads that it cannot serve. One that has started just now is seen.
    await store.record(kind.name, { version, oldestProgram: to })
    refuseBeside(await store.earlierPrograms(kind.name, to), { store, kind, isAdditive })
  }
  const from = Math.min(version, earlier?.oldest ?? version)
  await convertAll(store, kind, from, log)
  await store.record(kind.name, { version: to, oldestProgram: isAdditive ? oldestProgram : to })
  await earlier?.purge()
}

/** @throws {Unfit} programs of an earlier version must end first */
function refuseBeside(
  earlier: EarlierPrograms | null,
  { store, kind, isAdditive }: { readonly store: MigratedStore; readonly kind: Kind; readonly isAdditive: boolean },
): void {
  if (earlier?.areRunning && !(isAdditive && earlier.staysRegistered))
    throw new Unfit([
      `${store.name} is used by programs of an earlier version, which cannot read documents of the kind ${kind.name} in version ${currentVersion(kind)}: stop them, and the migration begins`,
    ])
}

async function convertAll(store: MigratedStore, kind: Kind, from: number, log: Log): Promise<void> {
  const of = await store.count(kind.name)
  if (of === 0) return
  const said = { store: store.name, kind: kind.name, from, to: currentVersion(kind), of }
  log.warn(said, 'migrating documents to the version of this program')
  let reportedMs = performance.now()
  await store.convert(
    kind.name,
    (document) => migrated(document, kind, from),
    (done) => {
      if (performance.now() - reportedMs < LOG_EVERY_MS) return
      reportedMs = performance.now()
      log.warn({ ...said, done }, 'migrating documents')
    },
  )
  log.warn(said, 'the documents are migrated')
}

function recordOf(records: ReadonlyMap<string, KindRecord>, kind: Kind): Required<KindRecord> {
  const { version, oldestProgram = version } = records.get(kind.name) ?? { version: 1 }
  return { version, oldestProgram }
}
