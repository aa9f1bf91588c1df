import type { ParserLimits } from '../limits.ts'
import { ZipArchive } from '../zip.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { listFiles } from './unpack-zip.ts'

/** Reads the names of an archive's files. The files become separate documents. */
export function readZip(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): void {
  for (const name of listFiles(new ZipArchive(bytes, limits))) builder.add('list_item', name)
  builder.hasFiles = true
}
