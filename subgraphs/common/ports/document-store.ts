/**
 * The document-store port: a narrow, typed subset of the `mongodb` driver's collection, with the driver's names and meanings.
 * Adapters pass `test/contract/document-store.ts`, which is exactly the list below. Documents hold strings, safe integers, booleans,
 * null, Dates, arrays and plain objects; `_id` is a string that the caller makes. Nothing needs a transaction over two documents:
 * each invariant lives in one document, and one write of it is atomic and, once its promise resolves, survives `kill -9` and power loss.
 */

export type StoredValue = string | number | boolean | null | Date | readonly StoredValue[] | { readonly [field: string]: StoredValue }
export interface StoredDocument {
  readonly _id: string
}

/** Compared values are strings, integers, booleans or Dates; `null` is equal to an absent field, as in MongoDB. */
export type Scalar = string | number | boolean | Date | null
export interface Condition {
  readonly $eq?: Scalar
  readonly $gt?: Scalar
  readonly $gte?: Scalar
  readonly $lt?: Scalar
  readonly $lte?: Scalar
  /** At most 1,000 values. */
  readonly $in?: readonly Scalar[]
}
/** Conjunction over dotted paths: `{ organizationId: 'org_…', createdAt: { $gte: date } }`. A bare value means `$eq`. */
export type Filter = Readonly<Record<string, Scalar | Condition>>

/** Dotted paths on the left. Operators fail on a target of the wrong type, as MongoDB does, and then nothing of the update is done. */
export interface Update {
  readonly $set?: Readonly<Record<string, StoredValue>>
  readonly $unset?: Readonly<Record<string, ''>>
  /** Safe integers; an absent field counts as 0. */
  readonly $inc?: Readonly<Record<string, number>>
  /** Appends one value, or those of `$each` in order. */
  readonly $push?: Readonly<Record<string, StoredValue | { readonly $each: readonly StoredValue[] }>>
  /** Removes elements equal to the value, or objects that meet the conditions on their fields. */
  readonly $pull?: Readonly<Record<string, Scalar | Readonly<Record<string, Scalar | Condition>>>>
  /** Applied only when `upsert` inserts. */
  readonly $setOnInsert?: Readonly<Record<string, StoredValue>>
}

export interface IndexSpec {
  /** Dotted paths of single-valued fields, ascending; sorts may run either way. Every document carries them unless `sparse`. */
  readonly fields: readonly string[]
  readonly unique?: boolean
  /** Documents without the first field are not in the index, so that `unique` does not bind them. */
  readonly sparse?: boolean
}

export interface CollectionSpec {
  /** Lower case with underscores. */
  readonly name: string
  readonly indexes: readonly IndexSpec[]
}

export interface FindOptions {
  /** Fields of one index, in its order (after those that the filter fixes by equality); `_id` last is implied. Either all 1 or all -1. */
  readonly sort?: Readonly<Record<string, 1 | -1>>
  /** 1 to 1,000; there is no unbounded read. */
  readonly limit: number
}

export interface DocumentCollection<T extends StoredDocument> {
  /** By `_id`, or by an equality on a declared index. */
  findOne(filter: Filter): Promise<T | null>
  /** In the order of `sort`, default `_id` ascending. @throws {QueryWouldScan} no declared index serves the filter and the sort. */
  find(filter: Filter, options: FindOptions): Promise<readonly T[]>
  /** Over a declared index. */
  countDocuments(filter: Filter): Promise<number>
  /** @throws {DuplicateKey} on `_id` or a unique index; nothing was written. */
  insertOne(document: T): Promise<void>
  /** At most 1,000. Each is its own write; those whose `_id` exists already are left as they are. Gives how many were new. */
  insertMissing(documents: readonly T[]): Promise<number>
  /**
   * Changes the document that has this `_id` (or unique key) if it meets the rest of the filter too, and gives it as it is afterwards;
   * null when none does. With `upsert`, inserts from the equalities of the filter, `$setOnInsert` and the update when no document has the
   * key; when one has it but fails the rest, the insert fails. @throws {DuplicateKey}
   */
  findOneAndUpdate(filter: Filter, update: Update, options?: { readonly upsert?: boolean }): Promise<T | null>
  /** The document as it was, or null. By `_id` or unique key, with guards like an update. */
  findOneAndDelete(filter: Filter): Promise<T | null>
  /** Over a declared index, at most 1,000 a call. Gives how many were deleted; repeat until it is 0. */
  deleteMany(filter: Filter): Promise<number>
}

export interface DocumentStore extends AsyncDisposable {
  /** Makes the collection and its indexes when they are not there yet. The same name gives the same collection. */
  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T>
  /** What the store's own clock shows. @throws {Error} it cannot serve reads or writes: `Unfit` at the moment, `Damaged` any more. */
  ping(signal: AbortSignal): Promise<Date>
}

/** `_id` or a unique index holds the value already. Callers translate it; it never leaves the service. */
export class DuplicateKey extends Error {
  constructor(collection: string, cause?: unknown) {
    super(`A document with this key exists in ${collection}.`, { cause })
    this.name = 'DuplicateKey'
  }
}

/** A defect of the caller: no index serves the query. */
export class QueryWouldScan extends Error {
  constructor(collection: string, detail: string) {
    super(`No index of ${collection} serves ${detail}.`)
    this.name = 'QueryWouldScan'
  }
}
