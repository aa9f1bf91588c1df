import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'
import type { RecordKind } from './record-kind.ts'

/** What a subgraph writes of one organization, in order. */
export interface ArchiveSink {
  record(kind: RecordKind<unknown>, record: object): Promise<void>
  /** Bytes below a path of the archive. Records that were given before precede them. */
  file(path: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Counts something that stays behind, for the operator to know. */
  skip(what: string): void
}

/** Takes the records of one kind from an archive, in its order. */
export interface RecordTaker {
  readonly kind: RecordKind<unknown>
  /** Before anything is written. @throws {Error} they must not be imported */
  check?(records: readonly never[]): Promise<void>
  /** Can be repeated. */
  write(records: readonly never[]): Promise<void>
}

/** Takes the bytes below one folder of an archive. */
export interface FileTaker {
  /** With the slash. */
  readonly folder: string
  /** @throws {Error} the name, or the size in bytes, does not fit */
  check(name: string, sizeBytes: number): void
  /** Can be repeated. */
  write(name: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
}

/** What a subgraph takes from an archive. */
export interface ArchiveTakers {
  readonly records: readonly RecordTaker[]
  readonly files: readonly FileTaker[]
  /** After everything was checked. @throws {Error} something is missing */
  requireAll?(): void
}

/** Keeps the type of the records between a kind and what takes it. */
export function taker<Imported>(
  kind: RecordKind<Imported>,
  on: { check?(records: readonly Imported[]): Promise<void>; write(records: readonly Imported[]): Promise<void> },
): RecordTaker {
  return { kind, ...on } as RecordTaker
}

/** Records in one read. Some have megabytes. */
const PAGE = 50
/** As the port allows in one query. */
const MAX_IDS = 1_000

interface Owned extends StoredDocument {
  readonly organizationId: string
}

/** All records that meet a filter on an index, in the order of their ids. */
export async function* listAll<Record extends StoredDocument>(
  records: Pick<DocumentCollection<Record>, 'find'>,
  filter: Filter,
  page = PAGE,
): AsyncGenerator<Record> {
  for (let after = ''; ; ) {
    const found = await records.find({ ...filter, _id: { $gt: after } }, { sort: { _id: 1 }, limit: page })
    yield* found
    if (found.length < page) return
    after = found.at(-1)!._id
  }
}

/** @throws {Error} another organization has a record with one of these ids */
export async function refuseOwnedByOthers<Record extends Owned>(
  records: Pick<DocumentCollection<Record>, 'find'>,
  ids: readonly string[],
  organizationId: string,
): Promise<void> {
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = ids.slice(from, from + MAX_IDS)
    const found = await records.find({ _id: { $in: some } }, { limit: some.length })
    const other = found.find((record) => record.organizationId !== organizationId)
    if (other)
      throw new Error(
        `${other._id} is here already, in ${other.organizationId}: an import replaces nothing. Import into an installation without it, or delete that organization first.`,
      )
  }
}

/** @throws {Error} the organization has no record with one of these ids: records of an archive belong to records of it */
export async function requireOwn(records: readonly Reading[], ids: readonly string[], organizationId: string): Promise<void> {
  const wanted = [...new Set(ids)]
  for (let from = 0; from < wanted.length; from += MAX_IDS) {
    const some = wanted.slice(from, from + MAX_IDS)
    const own = new Set<string>()
    for (const each of records) {
      const found = await each.find({ _id: { $in: some } }, { limit: some.length })
      for (const record of found) if (record.organizationId === organizationId) own.add(record._id)
    }
    const lacking = some.find((id) => !own.has(id))
    if (lacking !== undefined) throw new Error(`The archive is damaged: it has something of ${lacking}, but not ${lacking} itself.`)
  }
}

interface Reading {
  find(filter: Filter, options: { readonly limit: number }): Promise<readonly Owned[]>
}

/** Takes records that are stored as they come, below the organization. `before` is called with those of one step. */
export function storedTaker<Record extends Owned, Imported extends { readonly _id: string }>(
  kind: RecordKind<Imported>,
  records: DocumentCollection<Record>,
  organizationId: string,
  toRecord: (imported: Imported) => Omit<Record, 'organizationId'>,
  before: (imported: readonly Imported[]) => Promise<void> = async () => undefined,
): RecordTaker {
  const ids = (imported: readonly Imported[]) => imported.map(({ _id }) => _id)
  return taker(kind, {
    check: (imported) => refuseOwnedByOthers(records, ids(imported), organizationId),
    async write(imported) {
      await before(imported)
      // The caller names the fields; the organization is the one of the import.
      const all = imported.map((each) => ({ ...toRecord(each), organizationId }) as unknown as Record)
      for (let from = 0; from < all.length; from += MAX_IDS) await records.insertMissing(all.slice(from, from + MAX_IDS))
    },
  })
}
