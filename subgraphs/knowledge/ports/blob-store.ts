/** A stored blob. */
export interface BlobEntry {
  readonly key: string
  readonly sizeBytes: number
}

/** Stores bytes by key: contents of files, extracted texts and chunks. Adapters pass `test/contract/blob-store.ts`. */
export interface BlobStore {
  /** Stores the bytes durably and replaces earlier ones. A reader sees either all old or all new bytes. */
  put(key: string, bytes: Uint8Array): Promise<void>
  /**
   * Returns `length` bytes from `offset` (fewer at the end), at most 32 MiB. Without a range, returns all bytes.
   * Returns null if the key does not exist. The caller owns the returned array.
   * @throws {BlobCorrupted} parts of the blob are lost
   */
  get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null>
  /** Idempotent: the key need not exist. */
  delete(key: string): Promise<void>
  /** Deletes every key that starts with `prefix`. Idempotent. */
  deleteAll(prefix: string): Promise<void>
  /**
   * Lists blobs in ascending order of keys. Starts after the key `after` (`''`: from the first) and returns at most
   * `limit` (1 to 1000).
   */
  list(after: string, limit: number): Promise<readonly BlobEntry[]>
  /** @throws {Error} the store cannot serve requests */
  ping(signal: AbortSignal): Promise<void>
}

/** The key exists, but some of its bytes are lost. */
export class BlobCorrupted extends Error {
  constructor(key: string, options?: ErrorOptions) {
    super(`the blob ${key} lacks pieces`, options)
    this.name = 'BlobCorrupted'
  }
}
