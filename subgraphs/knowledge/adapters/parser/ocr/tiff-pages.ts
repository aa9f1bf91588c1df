/** A page of a TIFF, by the offset of its directory in the file. */
interface TiffPage {
  readonly offset: number
  readonly width: number
  readonly height: number
}

const LITTLE_ENDIAN = 0x4949
/** Offset in the header of the first directory's offset. */
const FIRST_DIRECTORY = 4
const ENTRY_BYTES = 12
/** Maximum pages that are read. It limits the time for a file of one million empty directories. */
const MAX_PAGES = 5_000
const TAG_KIND = 254
const TAG_WIDTH = 256
const TAG_HEIGHT = 257
/** The bit that marks a reduced copy of another page. */
const REDUCED = 1
const SHORT = 3

/** Lists the pages of a TIFF (TIFF 6.0, section 2), without reduced copies. Stops at the first corruption. */
export function listTiffPages(bytes: Uint8Array): readonly TiffPage[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isLittle = view.byteLength >= 8 && view.getUint16(0) === LITTLE_ENDIAN
  const pages: TiffPage[] = []
  const seen = new Set<number>()
  let offset = view.byteLength >= 8 ? view.getUint32(FIRST_DIRECTORY, isLittle) : 0
  while (offset !== 0 && offset + 2 <= view.byteLength && !seen.has(offset) && seen.size < MAX_PAGES) {
    seen.add(offset)
    const count = view.getUint16(offset, isLittle)
    const end = offset + 2 + count * ENTRY_BYTES
    if (end + 4 > view.byteLength) break
    const tags = new Map<number, number>()
    for (let at = offset + 2; at < end; at += ENTRY_BYTES) {
      const isShort = view.getUint16(at + 2, isLittle) === SHORT
      tags.set(view.getUint16(at, isLittle), isShort ? view.getUint16(at + 8, isLittle) : view.getUint32(at + 8, isLittle))
    }
    const width = tags.get(TAG_WIDTH) ?? 0
    const height = tags.get(TAG_HEIGHT) ?? 0
    if (((tags.get(TAG_KIND) ?? 0) & REDUCED) === 0 && width > 0 && height > 0) pages.push({ offset, width, height })
    offset = view.getUint32(end, isLittle)
  }
  return pages
}

/** Returns a copy of the file that starts with another page, because decoders read the first one. */
export function withFirstPage(bytes: Uint8Array, { offset }: TiffPage): Uint8Array {
  const copy = Uint8Array.from(bytes)
  const view = new DataView(copy.buffer)
  view.setUint32(FIRST_DIRECTORY, offset, view.getUint16(0) === LITTLE_ENDIAN)
  return copy
}
