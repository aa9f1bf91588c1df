import { type Caller, requireScope } from '../identity/principal.ts'

/** The files of this process's stores; none when a server has the data. */
export interface StoreFiles {
  /**
   * Continues the full check of the files, one after another. A call waits only a short time: a large file takes
   * minutes, and the service continues meanwhile. `after` is the `next` of the previous call; null starts with the
   * first file. Idempotent.
   * @throws {KisError} `invalid_request`: `after` is not a file
   */
  check(after: string | null): Promise<FileVerification>
}

/** The result of one call: a part of the full check. */
export interface FileVerification {
  /** Files whose check ended during this call. */
  readonly files: readonly CheckedFile[]
  /** Null: all files are checked. */
  readonly next: string | null
}

/** What the check of a file found. */
export interface CheckedFile {
  /** The file name, without its folder. */
  readonly name: string
  /** The first problems; empty: none were found. */
  readonly problems: readonly string[]
}

/**
 * Checks files for an operator.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 * @throws {KisError} `invalid_request`: the cursor is not one of a file
 */
export async function verifyFiles(files: StoreFiles, caller: Caller | null, after: string | null): Promise<FileVerification> {
  requireScope(caller, 'operator')
  return files.check(after)
}
