import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

export interface ZipEntry {
  readonly name: string
  readonly content: Buffer
  /** True if the entry is not compressed. */
  readonly stored?: boolean
  /** False values for the headers. */
  readonly claim?: {
    readonly size?: number
    readonly packedSize?: number
    readonly method?: number
    readonly crc?: number
    readonly flags?: number
  }
}

/** Returns the entries of an archive with a valid directory. */
export function readZip(archive: Buffer): ZipEntry[] {
  const end = archive.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  const count = archive.readUInt16LE(end + 10)
  const entries: ZipEntry[] = []
  for (let i = 0, at = archive.readUInt32LE(end + 16); i < count; i++) {
    const [method, packed] = [archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 20)]
    const [nameLength, extra, comment] = [archive.readUInt16LE(at + 28), archive.readUInt16LE(at + 30), archive.readUInt16LE(at + 32)]
    const local = archive.readUInt32LE(at + 42)
    const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    const data = archive.subarray(start, start + packed)
    entries.push({
      name: archive.toString('utf8', at + 46, at + 46 + nameLength),
      content: method === 8 ? inflateRawSync(data) : Buffer.from(data),
      stored: method === 0,
    })
    at += 46 + nameLength + extra + comment
  }
  return entries
}

/** Returns an archive of deflated entries, with the headers that they claim. */
export function writeZip(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content, stored = false, claim = {} } of entries) {
    const data = stored ? content : deflateRawSync(content)
    const bytes = Buffer.from(name)
    const header = Buffer.alloc(26)
    header.writeUInt16LE(20, 0)
    header.writeUInt16LE(claim.flags ?? 0x800, 2)
    header.writeUInt16LE(claim.method ?? (stored ? 0 : 8), 4)
    header.writeUInt32LE(claim.crc ?? crc32(content), 10)
    header.writeUInt32LE(claim.packedSize ?? data.length, 14)
    header.writeUInt32LE(claim.size ?? content.length, 18)
    header.writeUInt16LE(bytes.length, 22)
    const file = Buffer.concat([Buffer.from('PK\x03\x04'), header, bytes, data])
    const locator = Buffer.alloc(14)
    locator.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), header, locator, bytes]))
    files.push(file)
    offset += file.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(
    directory.reduce((sum, { length }) => sum + length, 0),
    12,
  )
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, ...directory, end])
}
