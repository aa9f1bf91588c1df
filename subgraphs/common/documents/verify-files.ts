import { type Caller, requireScope } from '../identity/principal.ts'
import type { FileVerification, StoreFiles } from '../ports/store-files.ts'

/** @throws {KisError} `permission_denied`, `invalid_request`. */
export async function verifyFiles(files: StoreFiles, caller: Caller | null, after: string | null): Promise<FileVerification> {
  requireScope(caller, 'operator')
  return files.check(after)
}
