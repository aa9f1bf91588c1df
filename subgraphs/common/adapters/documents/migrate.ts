import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { type AnyDocument, currentVersion, type Kind, migrated } from './kinds.ts'

/** Interval of the log lines that report the progress of a migration. */
const LOG_EVERY_MS = 5_000

/** What a store records about the documents of a kind. No record: all documents are of version 1. */
export interface KindRecord {
  readonly version: number
  /** The earliest version of a program that can serve the documents. Absent: `version`. */
  readonly oldestProgram?: number
}

/** Programs that know an earlier version of a kind and may have written documents since its last migration. */
export interface EarlierPrograms {
  /** The earliest version that one of these programs knows. */
  readonly oldest: number
  readonly areRunning: boolean
  /** Whether running programs stay registered after they end. */
  readonly staysRegistered: boolean
  /** Removes the records of programs that had ended. */
  purge(): Promise<void>
}

/** The operations of a store that a migration needs. */
export interface MigratedStore {
  /** The store's file or database, for messages to the operator. */
  readonly name: string
  /**
   * Runs `run` while no other process can migrate the store.
   * @throws {Unfit} another process migrates the store
   */
  alone(run: () => Promise<void>): Promise<void>
  /** Returns the stored records by kind. */
  records(): Promise<ReadonlyMap<string, KindRecord>>
  record(kind: string, record: KindRecord): Promise<void>
  /** Null: no such program is registered. */
  earlierPrograms(kind: string, version: number): Promise<EarlierPrograms | null>
  /** Returns the approximate number of documents. */
  count(kind: string): Promise<number>
  /**
   * Converts each document, and reports how many are done. A document that another program changes meanwhile is read
   * again.
   */
  convert(kind: string, convert: (document: AnyDocument) => AnyDocument, report: (done: number) => void): Promise<void>
}

/**
 * Converts all documents to the version of this program. Documents that earlier programs have written since the last
 * migration are converted once those programs have ended. After an interruption at any moment, the next call does the
 * rest.
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
  // Another process has migrated the kind meanwhile.
  if (version > to || (version === to && (!earlier || earlier.areRunning))) return
  const isAdditive = kind.migrations.slice(version - 1).every((migration) => migration.isAdditive)
  refuseBeside(earlier, { store, kind, isAdditive })
  if (!isAdditive) {
    // A program that starts after this write reads that it cannot serve. A program that started just before is
    // registered.
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
