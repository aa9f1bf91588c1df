/** Bytes under a key, for file contents, extracted texts and passages. Adapters pass `test/contract/blob-store.ts`. */
export interface BlobStore {
  /** Stores the bytes durably, replacing what the key had; a reader sees the old bytes or the new, never a mixture. */
  put(key: string, bytes: Uint8Array): Promise<void>
  /**
   * `length` bytes from `offset` (fewer at the end), at most 32 MiB; `null` when there is no such key.
   * Without a range: the whole.
   * @throws {BlobDamaged} parts of it are lost.
   */
  get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null>
  /** Repeatable; an absent key is fine. */
  delete(key: string): Promise<void>
  /** Every key that begins with `prefix`. Repeatable. */
  deleteAll(prefix: string): Promise<void>
  /** Rejects when it cannot serve. */
  ping(signal: AbortSignal): Promise<void>
}

/** The store has the key, and not all of its bytes any more. */
export class BlobDamaged extends Error {
  constructor(key: string, options?: ErrorOptions) {
    super(`the blob ${key} lacks pieces`, options)
    this.name = 'BlobDamaged'
  }
}
