import type { DocumentCollection, Filter, StoredDocument } from '../ports/document-store.ts'
import type { RecordKind } from './record-kind.ts'

/** Receives what a subgraph exports of one organization, in order. */
export interface ArchiveSink {
  /** Writes a record. */
  record(kind: RecordKind<unknown>, record: object): Promise<void>
  /** Writes bytes below a path of the archive. The records written before this call precede the bytes. */
  file(path: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Counts something that is not exported, as information for the operator. */
  skip(what: string): void
}

/** Imports the records of one kind from an archive, in its order. */
export interface RecordTaker {
  readonly kind: RecordKind<unknown>
  /**
   * Checks the records before anything is written.
   * @throws {Error} they must not be imported
   */
  check?(records: readonly never[]): Promise<void>
  /** Writes the records. Can be repeated. */
  write(records: readonly never[]): Promise<void>
}

/** Imports the bytes below one folder of an archive. */
export interface FileTaker {
  /** The folder's path, with a slash at the end. */
  readonly folder: string
  /** @throws {Error} the name, or the size in bytes, is wrong */
  check(name: string, sizeBytes: number): void
  /** Writes the bytes. Can be repeated. */
  write(name: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
}

/** The importers of a subgraph. */
export interface ArchiveTakers {
  readonly records: readonly RecordTaker[]
  readonly files: readonly FileTaker[]
  /**
   * Checks the whole import after all records were checked.
   * @throws {Error} something is missing
   */
  requireAll?(): void
}

/** Ties the record type of a kind to its importer. */
export function taker<Imported>(
  kind: RecordKind<Imported>,
  on: { check?(records: readonly Imported[]): Promise<void>; write(records: readonly Imported[]): Promise<void> },
): RecordTaker {
  return { kind, ...on } as RecordTaker
}

/** Records of one read. Some have megabytes. */
const PAGE = 50
/** The limit of one query in the document-store port. */
const MAX_IDS = 1_000

interface Owned extends StoredDocument {
  readonly organizationId: string
}

/** Yields all records that meet a filter on an index, in the order of their ids. */
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
        `${other._id} already exists here, in ${other.organizationId}: an import replaces nothing. Import into an installation without it, or delete that organization first.`,
      )
  }
}

/**
 * @throws {Error} the organization has no record with one of these ids: records of an archive refer only to its own
 * records
 */
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
    if (lacking !== undefined) throw new Error(`The archive is corrupted: it has records of ${lacking}, but not ${lacking} itself.`)
  }
}

interface Reading {
  find(filter: Filter, options: { readonly limit: number }): Promise<readonly Owned[]>
}

/**
 * Imports records that are stored as they are, below the organization. `before` is called with the records of one step.
 */
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
      // The caller names the fields; the organization is that of the import.
      const all = imported.map((each) => ({ ...toRecord(each), organizationId }) as unknown as Record)
      for (let from = 0; from < all.length; from += MAX_IDS) await records.insertMissing(all.slice(from, from + MAX_IDS))
    },
  })
}
