import type { FileVerification, StoreFiles } from './ports/store-files.ts'
import { type Caller, requireScope } from './principal.ts'

/** @throws {KisError} `permission_denied`, `invalid_request`. */
export async function verifyFiles(files: StoreFiles, caller: Caller | null, after: string | null): Promise<FileVerification> {
  requireScope(caller, 'operator')
  return files.check(after)
}
