/**
 * The document-store port: a narrow, typed subset of the `mongodb` driver's collection, with the driver's names and
 * meanings. Adapters pass `test/contract/document-store.ts`, which tests exactly this subset. Documents contain
 * strings, safe integers, booleans, null, Dates, arrays and plain objects; `_id` is a string that the caller creates.
 * No operation needs a transaction over two documents: each invariant concerns one document. One write of a document is
 * atomic and, once its promise resolves, survives `kill -9` and power loss.
 */

export type StoredValue = string | number | boolean | null | Date | readonly StoredValue[] | { readonly [field: string]: StoredValue }
export interface StoredDocument {
  readonly _id: string
}

/** Values that can be compared: strings, integers, booleans or Dates. `null` equals an absent field, as in MongoDB. */
type Scalar = string | number | boolean | Date | null
interface Condition {
  readonly $eq?: Scalar
  readonly $gt?: Scalar
  readonly $gte?: Scalar
  readonly $lt?: Scalar
  readonly $lte?: Scalar
  /** At most 1,000 values. */
  readonly $in?: readonly Scalar[]
}
/**
 * All conditions must hold, on dotted paths: `{ organizationId: 'org_…', createdAt: { $gte: date } }`. A bare value
 * means `$eq`.
 */
export type Filter = Readonly<Record<string, Scalar | Condition>>

/**
 * Dotted paths on the left. An operator fails on a target of the wrong type, as in MongoDB, and then the whole update
 * has no effect.
 */
export interface Update {
  readonly $set?: Readonly<Record<string, StoredValue>>
  readonly $unset?: Readonly<Record<string, ''>>
  /** Safe integers. An absent field counts as 0. */
  readonly $inc?: Readonly<Record<string, number>>
  /** Appends one value, or those of `$each` in order. */
  readonly $push?: Readonly<Record<string, StoredValue | { readonly $each: readonly StoredValue[] }>>
  /** Removes elements that equal the value, or objects that meet the conditions on their fields. */
  readonly $pull?: Readonly<Record<string, Scalar | Readonly<Record<string, Scalar | Condition>>>>
  /** Applied only when `upsert` inserts. */
  readonly $setOnInsert?: Readonly<Record<string, StoredValue>>
}

/** An index of a collection. */
export interface IndexSpec {
  /**
   * Dotted paths of single-valued fields, ascending. Sorts may run either way. Every document must have them, unless
   * `sparse`.
   */
  readonly fields: readonly string[]
  readonly unique?: boolean
  /** Documents without the first field are not in the index, so `unique` does not apply to them. */
  readonly sparse?: boolean
}

export interface CollectionSpec {
  /** Lower case with underscores. */
  readonly name: string
  readonly indexes: readonly IndexSpec[]
}

export interface FindOptions {
  /**
   * Fields of one index, in its order (after those that the filter fixes by equality); `_id` at the end is implied.
   * Either all 1 or all -1.
   */
  readonly sort?: Readonly<Record<string, 1 | -1>>
  /** 1 to 1,000. Unlimited reads do not exist. */
  readonly limit: number
}

export interface DocumentCollection<T extends StoredDocument> {
  /** By `_id`, or by an equality on a declared index. */
  findOne(filter: Filter): Promise<T | null>
  /**
   * In the order of `sort`; default: `_id` ascending.
   * @throws {QueryWouldScan} no declared index serves the filter and the sort
   */
  find(filter: Filter, options: FindOptions): Promise<readonly T[]>
  /** Needs a declared index, or a `limit` and an empty filter. Counts no more than `limit`. */
  countDocuments(filter: Filter, options?: { readonly limit: number }): Promise<number>
  /** @throws {DuplicateKey} `_id` or a unique index has the value already; nothing was written */
  insertOne(document: T): Promise<void>
  /**
   * Inserts at most 1,000 documents, each as a separate write. Existing documents with the same `_id` stay unchanged.
   * Returns the number of new documents.
   */
  insertMissing(documents: readonly T[]): Promise<number>
  /**
   * Changes the document with this `_id` (or unique key) if it also meets the rest of the filter, and returns the
   * changed document; null when there is none. With `upsert` and no document with the key, inserts one from the
   * equalities of the filter, `$setOnInsert` and the update.
   * @throws {DuplicateKey} with `upsert`: a document has the key but does not meet the rest of the filter, or a unique
   * index has the value already
   */
  findOneAndUpdate(filter: Filter, update: Update, options?: { readonly upsert?: boolean }): Promise<T | null>
  /**
   * Changes the document as `findOneAndUpdate` does, for callers that do not need the changed document; false when
   * there is none. A large document then need not be read.
   */
  updateOne(filter: Filter, update: Update): Promise<boolean>
  /**
   * Deletes a document and returns it; null when there is none. By `_id` or unique key, with guards as for an update.
   */
  findOneAndDelete(filter: Filter): Promise<T | null>
  /** Needs a declared index. Deletes at most 1,000 documents and returns their number. Repeat until it is 0. */
  deleteMany(filter: Filter): Promise<number>
}

/** The documents of one subgraph. */
export interface DocumentStore extends AsyncDisposable {
  /** Creates the collection and its indexes if they do not exist. The same name returns the same collection. */
  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T>
  /**
   * Returns the time of the store's own clock.
   * @throws {Unfit} the store cannot serve reads or writes now
   * @throws {Corrupted} the store is corrupted, and waiting does not help
   */
  ping(signal: AbortSignal): Promise<Date>
}

/** `_id` or a unique index has the value already. Callers translate this error; it never leaves the service. */
export class DuplicateKey extends Error {
  constructor(collection: string, cause?: unknown) {
    super(`A document with this key exists in ${collection}.`, { cause })
    this.name = 'DuplicateKey'
  }
}

/** No index serves the query: a defect of the caller. */
export class QueryWouldScan extends Error {
  constructor(collection: string, detail: string) {
    super(`No index of ${collection} serves ${detail}.`)
    this.name = 'QueryWouldScan'
  }
}
