import type { FileKind } from '../database.ts'

export const DOCUMENT_FILE: FileKind = {
  name: 'document store',
  /** "KisD" in ASCII. */
  applicationId: 0x4b69_7344,
  schemaVersion: 1,
  /** A document of a few KB then fits into one page or two, without a chain. */
  pageSize: 8192,
}
