import { crc32 } from 'node:zlib'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ZipArchive } from '../zip.ts'

/**
 * Returns an archive of the named parts, stored without compression (APPNOTE 4.3). mammoth inflates archives without a
 * limit, so it gets parts that `ZipArchive` has inflated. Leaves out parts that are absent or damaged.
 * @throws {ParseFailure} `limit_exceeded` as `ZipArchive` does.
 */
export async function packParts(archive: ZipArchive, names: readonly string[]): Promise<Buffer> {
  const files: Uint8Array[] = []
  const directory: Uint8Array[] = []
  let offset = 0
  for (const name of names) {
    const content = await archive.read(name).catch((error: unknown) => {
      if (error instanceof ParseFailure && error.code === 'corrupt') return undefined
      throw error
    })
    if (!content) continue
    const label = Buffer.from(name)
    const header = Buffer.alloc(26)
    header.writeUInt16LE(20, 0)
    header.writeUInt32LE(crc32(content), 10)
    header.writeUInt32LE(content.length, 14)
    header.writeUInt32LE(content.length, 18)
    header.writeUInt16LE(label.length, 22)
    const offsetFields = Buffer.alloc(14)
    offsetFields.writeUInt32LE(offset, 10)
    const file = [Buffer.from('PK\x03\x04'), header, label, content]
    files.push(...file)
    directory.push(Buffer.from('PK\x01\x02\x14\x00'), header, offsetFields, label)
    offset += file.reduce((sum, { length }) => sum + length, 0)
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(files.length / 4, 8)
  end.writeUInt16LE(files.length / 4, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, ...directory, end])
}
