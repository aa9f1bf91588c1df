import type { FileKind } from '../database.ts'

export const DOCUMENT_FILE: FileKind = {
  name: 'document store',
  /** "KisD" in ASCII. */
  applicationId: 0x4b69_7344,
  schemaVersion: 1,
  /** A document of some KB is then in one page or two, not in a chain. */
  pageSize: 8192,
}
