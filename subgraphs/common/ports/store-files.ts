/** The files in which stores of this process are; where a server has the data, none. */
export interface StoreFiles {
  /**
   * Goes on with the full check of the files, one after another, and waits for it a short time only: a large file takes minutes, and the service
   * goes on beside it. `after` is `next` of the call before; null begins with the first file. Repeatable.
   * @throws {KisError} `invalid_request`: `after` is no file.
   */
  check(after: string | null): Promise<FileVerification>
}

export interface FileVerification {
  /** Those whose check has ended in this call. */
  readonly files: readonly CheckedFile[]
  /** Null: nothing is left. */
  readonly next: string | null
}

export interface CheckedFile {
  /** Without its folder. */
  readonly name: string
  /** The first of them; empty: in order. */
  readonly problems: readonly string[]
}
