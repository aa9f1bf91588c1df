import { createHash } from 'node:crypto'
import { closeSync, fstatSync, readSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'
import { opened, toHeader } from '../backup/archive.ts'
import { BLOCK_BYTES } from '../backup/tar-writer.ts'
import {
  HEAD,
  type Head,
  MANIFEST,
  MAX_DESCRIPTION_BYTES,
  MAX_PART_BYTES,
  MAX_PART_LINES,
  type Manifest,
  parseHead,
  parseManifest,
} from './format.ts'

/** What is read at once of a file. */
const READ_BYTES = 1024 * 1024
/** More than any organization has. */
const MAX_ENTRIES = 20_000_000

const RECORDS = /^records\/([a-z]+\/[a-z-]+)\/\d{8}\.jsonl\.zst$/
const FILE = /^((?:files|texts)\/)([a-z0-9_]{1,100})$/

/** Hears what is in an archive, in its order. */
export interface ArchiveListener {
  /** At least one. */
  records(kind: string, values: readonly unknown[]): Promise<void>
  /** The bytes need not be read. */
  file(folder: string, name: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
}

interface Entry {
  readonly path: string
  readonly offset: number
  readonly bytes: number
}

/**
 * The archive of one organization. It is read from its beginning to its end, each time with its checksum, so that it
 * takes a few megabytes of memory, whatever it holds and whoever has made it.
 */
export class OrganizationReader implements Disposable {
  readonly head: Head
  readonly #file: string
  readonly #descriptor: number
  readonly #size: number
  #digest: string | undefined

  /** @throws {Error} it is no such archive, or of a newer version */
  constructor(file: string, version: string) {
    this.#file = file
    this.#descriptor = opened(file)
    try {
      this.#size = fstatSync(this.#descriptor).size
      const first = this.#entryAt(0)
      if (first?.path !== HEAD) throw this.#unfit('is not an exported organization')
      this.head = this.#described(first, (text) => parseHead(text, version))
    } catch (error) {
      closeSync(this.#descriptor)
      throw error
    }
  }

  /**
   * Reads everything. Resolves when the end was reached and everything was right.
   * @throws {Error} the archive is damaged, not complete, or has changed since it was read before; or what the listener
   * throws
   */
  async read(listener: ArchiveListener): Promise<Manifest> {
    const counted = { records: new Map<string, number>(), files: 0, bytes: 0 }
    const hash = createHash('sha256')
    let hashed = 0
    for (let offset = 0, entries = 0; ; entries++) {
      const entry = entries < MAX_ENTRIES ? this.#entryAt(offset) : null
      if (!entry) throw this.#unfit('is not complete: its end is missing')
      // Before what it protects is used as the end of all.
      if (entry.path === MANIFEST) {
        hashed = this.#hash(hash, hashed, offset)
        return this.#end(entry, counted, hash.digest('hex'))
      }
      await this.#tell(entry, offset, listener, counted)
      offset = entry.offset + Math.ceil(entry.bytes / BLOCK_BYTES) * BLOCK_BYTES
      hashed = this.#hash(hash, hashed, offset)
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }

  async #tell(
    entry: Entry,
    offset: number,
    listener: ArchiveListener,
    counted: { readonly records: Map<string, number>; files: number; bytes: number },
  ): Promise<void> {
    const { path, bytes } = entry
    const [, kind] = RECORDS.exec(path) ?? []
    const [, folder, name] = FILE.exec(path) ?? []
    if (kind) {
      const values = this.#records(entry)
      counted.records.set(kind, (counted.records.get(kind) ?? 0) + values.length)
      await listener.records(kind, values)
    } else if (folder && name) {
      counted.files++
      counted.bytes += bytes
      await listener.file(folder, name, bytes, this.#stream(entry))
    } else if (path !== HEAD || offset !== 0) {
      throw this.#unfit(`is damaged: it has an entry ${JSON.stringify(path.slice(0, 100))}`)
    }
  }

  #records(entry: Entry): readonly unknown[] {
    if (entry.bytes > MAX_PART_BYTES) throw this.#unfit(`is damaged: ${entry.path} is too large`)
    let text: string
    try {
      text = zstdDecompressSync(this.#bytes(entry.offset, entry.bytes), { maxOutputLength: MAX_PART_BYTES }).toString()
    } catch (error) {
      throw this.#unfit(`is damaged: ${entry.path} cannot be unpacked`, error)
    }
    const lines = text.split('\n', MAX_PART_LINES + 2)
    if (lines.length > MAX_PART_LINES + 1) throw this.#unfit(`is damaged: ${entry.path} has too many lines`)
    if (lines.pop() !== '' || lines.length === 0) throw this.#unfit(`is damaged: ${entry.path} does not end with a line`)
    return lines.map((line, i) => {
      try {
        return JSON.parse(line) as unknown
      } catch (error) {
        throw this.#unfit(`is damaged: line ${i + 1} of ${entry.path} is not JSON`, error)
      }
    })
  }

  #end(
    entry: Entry,
    counted: { readonly records: ReadonlyMap<string, number>; readonly files: number; readonly bytes: number },
    digest: string,
  ): Manifest {
    const manifest = this.#described(entry, parseManifest)
    if (manifest.sha256 !== digest) throw this.#unfit('is damaged: it has another SHA-256 than its manifest says')
    const kinds = new Set([...Object.keys(manifest.records), ...counted.records.keys()])
    const wrong = [...kinds].find((kind) => (manifest.records[kind] ?? 0) !== (counted.records.get(kind) ?? 0))
    if (wrong !== undefined || manifest.files.count !== counted.files || manifest.files.bytes !== counted.bytes)
      throw this.#unfit(`is damaged: it has other counts than its manifest says${wrong === undefined ? '' : ` of ${wrong}`}`)
    const end = entry.offset + Math.ceil(entry.bytes / BLOCK_BYTES) * BLOCK_BYTES
    if (end + 2 * BLOCK_BYTES !== this.#size) throw this.#unfit('is damaged: there is something after its end')
    const whole = `${digest} ${createHash('sha256').update(JSON.stringify(manifest)).digest('hex')}`
    this.#digest ??= whole
    if (this.#digest !== whole) throw this.#unfit('has changed while it was read')
    return manifest
  }

  #described<T>(entry: Entry, parse: (text: string) => T): T {
    if (entry.bytes > MAX_DESCRIPTION_BYTES) throw this.#unfit(`is damaged: ${entry.path} is too large`)
    try {
      return parse(this.#bytes(entry.offset, entry.bytes).toString())
    } catch (error) {
      throw this.#unfit((error as Error).message, error)
    }
  }

  /** Null: there is no entry, or it is cut off. */
  #entryAt(offset: number): Entry | null {
    if (offset + BLOCK_BYTES > this.#size) return null
    const header = toHeader(this.#bytes(offset, BLOCK_BYTES))
    if (!header) throw this.#unfit(offset === 0 ? 'is not an exported organization' : 'is damaged: it has something else than entries')
    const { path = '', size: bytes = -1, type } = header
    if (type !== 'File' || !Number.isSafeInteger(bytes) || bytes < 0)
      throw this.#unfit(`is damaged: it has an entry ${JSON.stringify(path.slice(0, 100))}`)
    return offset + BLOCK_BYTES + bytes <= this.#size ? { path, offset: offset + BLOCK_BYTES, bytes } : null
  }

  async *#stream({ offset, bytes }: Entry): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes; at += READ_BYTES) yield this.#bytes(offset + at, Math.min(READ_BYTES, bytes - at))
  }

  /** Hashes up to `to`, and gives it. */
  #hash(hash: ReturnType<typeof createHash>, from: number, to: number): number {
    const end = Math.min(to, this.#size)
    for (let at = from; at < end; at += READ_BYTES) hash.update(this.#bytes(at, Math.min(READ_BYTES, end - at)))
    return to
  }

  #bytes(offset: number, length: number): Buffer {
    const buffer = Buffer.alloc(length)
    for (let read = 0; read < length; ) {
      const count = readSync(this.#descriptor, buffer, read, length - read, offset + read)
      if (count === 0) throw this.#unfit('is not complete: it was cut while it was read')
      read += count
    }
    return buffer
  }

  #unfit(why: string, cause?: unknown): Error {
    return new Error(`${this.#file} ${why}.`, { cause })
  }
}
