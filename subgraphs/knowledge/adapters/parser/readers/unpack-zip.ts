import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import { ZipArchive } from '../zip.ts'
import type { PackedFile } from './unpack.ts'

/** Folders, and files that operating systems add to archives. */
const NOT_FILES = /\/$|^__MACOSX\/|(?:^|\/)(?:\.[^/]*|Thumbs\.db|desktop\.ini)$/

/** Lists the names of an archive's files, with their folders. */
export function listFiles(archive: ZipArchive): readonly string[] {
  return archive.names.filter((name) => name !== '' && !NOT_FILES.test(name))
}

/**
 * Yields the files of an archive. Corrupted or encrypted files have no bytes.
 * @throws {ParseFailure} `corrupt` or `limit_exceeded` if the archive is corrupted or a bomb.
 */
export async function* unpackZip(bytes: Uint8Array, limits: ParserLimits): AsyncGenerator<PackedFile> {
  const archive = new ZipArchive(bytes, limits)
  for (const name of listFiles(archive)) yield { name, bytes: await readOrNull(archive, name) }
}

async function readOrNull(archive: ZipArchive, name: string): Promise<Uint8Array | null> {
  try {
    return await archive.read(name)
  } catch (error) {
    if (error instanceof ParseFailure && error.code === 'corrupt') return null
    throw error
  }
}
