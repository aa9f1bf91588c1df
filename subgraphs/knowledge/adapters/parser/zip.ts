import { createInflateRaw } from 'node:zlib'
import { sizeText } from '../../../common/sizes.ts'
import { ParseFailure } from '../../ports/document-parser.ts'
import { type ParserLimits, RATIO_THRESHOLD_BYTES } from './limits.ts'

/** An entry of the archive's central directory (APPNOTE 4.3.12). */
interface ZipEntry {
  readonly name: string
  /** Whether the entry needs a password. */
  readonly isEncrypted: boolean
  readonly method: number
  readonly compressedSize: number
  readonly headerOffset: number
}

const END_OF_DIRECTORY = 0x06054b50
const DIRECTORY_ENTRY = 0x02014b50
const LOCAL_HEADER = 0x04034b50
/** The flag of an encrypted entry. */
const ENCRYPTED = 1
const STORED = 0
const DEFLATED = 8
/** The end record has 22 bytes, followed by a comment of at most 65,535 bytes. */
const END_RECORD_BYTES = 22
const MAX_COMMENT_BYTES = 65_535

/**
 * Reads the names and positions of an archive's entries.
 * @param cutBytes bytes of the archive that are omitted from `bytes`, somewhere before its directory
 * @throws {ParseFailure} `corrupt` if the directory cannot be read.
 * @throws {ParseFailure} `limit_exceeded` if there are too many entries.
 */
export function readZipDirectory(bytes: Uint8Array, maxEntries: number, cutBytes = 0): readonly ZipEntry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = endOfDirectory(view)
  const count = view.getUint16(end + 10, true)
  if (count > maxEntries) throw new ParseFailure('limit_exceeded', `The archive has more than ${maxEntries} entries.`)
  const entries: ZipEntry[] = []
  let at = view.getUint32(end + 16, true) - cutBytes
  for (let index = 0; index < count; index += 1) {
    if (at < 0 || at + 46 > bytes.length || view.getUint32(at, true) !== DIRECTORY_ENTRY) throw corrupt('its directory is corrupted')
    const nameLength = view.getUint16(at + 28, true)
    const name = decodeName(bytes.subarray(at + 46, at + 46 + nameLength))
    entries.push({
      name: name.replaceAll('\\', '/'),
      isEncrypted: (view.getUint16(at + 8, true) & ENCRYPTED) !== 0,
      method: view.getUint16(at + 10, true),
      compressedSize: view.getUint32(at + 20, true),
      headerOffset: view.getUint32(at + 42, true),
    })
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
  }
  return entries
}

/** The upper half of code page 437, the encoding of names that are not UTF-8 (APPNOTE D.1). */
const CODE_PAGE_437 = [
  ...'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0',
]

/** Decodes a name. Many programs write UTF-8 without the UTF-8 flag. */
function decodeName(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : CODE_PAGE_437[byte - 0x80])).join('')
  }
}

function endOfDirectory(view: DataView): number {
  const lowest = Math.max(0, view.byteLength - END_RECORD_BYTES - MAX_COMMENT_BYTES)
  for (let at = view.byteLength - END_RECORD_BYTES; at >= lowest; at -= 1) {
    if (view.getUint32(at, true) === END_OF_DIRECTORY) return at
  }
  throw corrupt('it has no directory, so it is cut off or no archive')
}

/**
 * The entries of an archive by name. An entry is inflated when it is read. Bytes are counted during inflation, because
 * headers may be false.
 */
export class ZipArchive {
  readonly #bytes: Uint8Array
  readonly #entries: ReadonlyMap<string, ZipEntry>
  readonly #limits: ParserLimits
  /** The inflated bytes of all entries that were read. Entries that are not read do not count. */
  #inflated = 0

  constructor(bytes: Uint8Array, limits: ParserLimits) {
    this.#bytes = bytes
    this.#limits = limits
    this.#entries = new Map(readZipDirectory(bytes, limits.maxArchiveEntries).map((entry) => [entry.name, entry]))
  }

  has(name: string): boolean {
    return this.#entries.has(name)
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()]
  }

  /**
   * Reads an entry.
   * @throws {ParseFailure} like `piecesOf`.
   */
  async read(name: string): Promise<Uint8Array> {
    const pieces: Uint8Array[] = []
    for await (const piece of this.piecesOf(name)) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  /**
   * Yields an entry's bytes while they inflate.
   * @throws {ParseFailure} `corrupt` if there is no such entry, or if it does not inflate.
   * @throws {ParseFailure} `limit_exceeded` if the archive inflates to too many bytes.
   */
  async *piecesOf(name: string): AsyncGenerator<Uint8Array> {
    const entry = this.#entries.get(name)
    if (!entry) throw corrupt(`it lacks ${name}`)
    if (entry.isEncrypted) throw corrupt(`${name} needs a password`)
    for await (const piece of this.#inflate(entry)) {
      this.#inflated += piece.length
      this.#checkInflated(this.#inflated)
      yield piece
    }
  }

  #checkInflated(size: number): void {
    const { maxInflatedBytes, maxInflationRatio } = this.#limits
    if (size > maxInflatedBytes) throw tooMuch(`inflates to more than ${sizeText(maxInflatedBytes)}`)
    if (size > RATIO_THRESHOLD_BYTES && size > this.#bytes.length * maxInflationRatio)
      throw tooMuch(`inflates to more than ${maxInflationRatio} times its size`)
  }

  async *#inflate(entry: ZipEntry): AsyncGenerator<Uint8Array> {
    const data = this.#readData(entry)
    if (entry.method === STORED) yield data
    else if (entry.method === DEFLATED) {
      const inflate = createInflateRaw()
      inflate.end(data)
      try {
        yield* inflate as AsyncIterable<Uint8Array>
      } catch {
        throw corrupt(`${entry.name} does not inflate`)
      }
    } else throw corrupt(`${entry.name} is compressed in an unknown way`)
  }

  #readData(entry: ZipEntry): Uint8Array {
    const bytes = this.#bytes
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const at = entry.headerOffset
    if (at + 30 > bytes.length || view.getUint32(at, true) !== LOCAL_HEADER) throw corrupt(`${entry.name} is not where the directory says`)
    const start = at + 30 + view.getUint16(at + 26, true) + view.getUint16(at + 28, true)
    if (start + entry.compressedSize > bytes.length) throw corrupt(`${entry.name} is cut off`)
    return bytes.subarray(start, start + entry.compressedSize)
  }
}

function corrupt(what: string): ParseFailure {
  return new ParseFailure('corrupt', `The archive cannot be read: ${what}.`)
}

function tooMuch(what: string): ParseFailure {
  return new ParseFailure('limit_exceeded', `The archive ${what}.`)
}
