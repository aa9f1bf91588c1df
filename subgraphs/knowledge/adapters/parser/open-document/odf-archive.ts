import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import { ZipArchive } from '../zip.ts'

const MANIFEST = 'META-INF/manifest.xml'
export const CONTENT = 'content.xml'

/**
 * Opens an OpenDocument archive.
 * @throws {ParseFailure} `password_required` if the manifest declares encrypted parts.
 * @throws {ParseFailure} `corrupt` if the archive cannot be read.
 */
export async function openOdf(bytes: Uint8Array, limits: ParserLimits): Promise<ZipArchive> {
  const archive = new ZipArchive(bytes, limits)
  if (archive.has(MANIFEST) && Buffer.from(await archive.read(MANIFEST)).includes('encryption-data'))
    throw new ParseFailure('password_required', 'The document needs a password to open. Upload a copy without one.')
  return archive
}
