/** What the store has under a key. */
export interface BlobEntry {
  readonly key: string
  readonly sizeBytes: number
}

/** Bytes by key, for contents of files, extracted texts and passages. Adapters pass `test/contract/blob-store.ts`. */
export interface BlobStore {
  /**
   * Stores the bytes durably, replacing earlier ones. A reader sees either the old bytes or the new ones, never a
   * mixture.
   */
  put(key: string, bytes: Uint8Array): Promise<void>
  /**
   * Gives `length` bytes from `offset` (fewer at the end), at most 32 MiB; `null` when there is no such key. Without a
   * range: all bytes. They belong to the caller.
   * @throws {BlobCorrupted} parts of it are lost
   */
  get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null>
  /** Idempotent; the key need not exist. */
  delete(key: string): Promise<void>
  /** Deletes every key that begins with `prefix`. Idempotent. */
  deleteAll(prefix: string): Promise<void>
  /** Blobs in ascending order of keys: those after `after` (`''`: all), at most `limit`, 1 to 1000. */
  list(after: string, limit: number): Promise<readonly BlobEntry[]>
  /** @throws {Error} it cannot serve */
  ping(signal: AbortSignal): Promise<void>
}

/** The store has the key, but has lost some of its bytes. */
export class BlobCorrupted extends Error {
  constructor(key: string, options?: ErrorOptions) {
    super(`the blob ${key} lacks pieces`, options)
    this.name = 'BlobDamaged'
  }
}
