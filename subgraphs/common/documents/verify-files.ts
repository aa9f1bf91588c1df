import { type Caller, requireScope } from '../identity/principal.ts'
import type { FileVerification, StoreFiles } from '../ports/store-files.ts'

/**
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 * @throws {KisError} `invalid_request`: the cursor is not one of a file
 */
export async function verifyFiles(files: StoreFiles, caller: Caller | null, after: string | null): Promise<FileVerification> {
  requireScope(caller, 'operator')
  return files.check(after)
}
