import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Transform } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { extract, type Headers } from 'tar-stream'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
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

/** Entries of an archive: more than any installation has. */
const MAX_ENTRIES = 100_000_000
/** Bytes between two entries: a header and some zeros. A header may not claim more. */
const MAX_BETWEEN_BYTES = 1024 * 1024

const RECORDS = /^records\/([a-z]+\/[a-z_-]+)\/\d{8}\.jsonl$/
const FILE = /^((?:files|texts|contents)\/)([a-z0-9_]{1,100})$/

/** Receives the content of an archive, in its order. */
export interface ArchiveListener {
  /** `values` has at least one record. */
  records(kind: string, values: readonly unknown[]): Promise<void>
  /** The listener need not read the bytes. */
  file(folder: string, name: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Called after everything else. @throws {Error} something is missing */
  end?(): void
}

interface Entry {
  readonly name: string
  readonly size: number
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * An archive. It is read from start to end, each time with its checksum, so that it takes a few megabytes of memory,
 * whatever it contains and whoever created it.
 */
export class ArchiveReader {
  readonly head: Head
  readonly #file: string
  #digest: string | undefined

  private constructor(file: string, head: Head) {
    this.#file = file
    this.head = head
  }

  /** @throws {Error} the file is no archive, or one of a newer version */
  static async open(file: string): Promise<ArchiveReader> {
    for await (const entry of entriesOf(file)) {
      if (entry.name !== HEAD) break
      const text = await wholeOf(entry, MAX_DESCRIPTION_BYTES, file)
      return new ArchiveReader(
        file,
        unfit(file, () => parseHead(text, VERSIONS.version)),
      )
    }
    throw new Error(`${file} is not an archive of \`kis export\`.`)
  }

  /**
   * Reads everything once.
   * @throws {Error} the archive is corrupted or incomplete; or what `listener` throws
   */
  async read(listener: ArchiveListener): Promise<Manifest> {
    const hash = createHash('sha256')
    const records = new Map<string, number>()
    const files = { count: 0, bytes: 0 }
    let manifest: Manifest | undefined
    let digest = ''
    let entries = 0
    for await (const { name, size, bytes } of entriesOf(this.#file)) {
      if (manifest || ++entries > MAX_ENTRIES) throw this.#corrupted('it has data after its end')
      if (name === MANIFEST) {
        const text = await wholeOf({ name, size, bytes }, MAX_DESCRIPTION_BYTES, this.#file)
        manifest = unfit(this.#file, () => parseManifest(text))
        digest = `${hash.digest('hex')} ${createHash('sha256').update(text).digest('hex')}`
        continue
      }
      hash.update(`${name} ${size}\n`)
      const hashed = hashing(bytes, hash)
      const [, kind] = RECORDS.exec(name) ?? []
      const [, folder, key] = FILE.exec(name) ?? []
      if (kind) {
        const values = this.#parse(name, await wholeOf({ name, size, bytes: hashed }, MAX_PART_BYTES, this.#file))
        records.set(kind, (records.get(kind) ?? 0) + values.length)
        await listener.records(kind, values)
      } else if (folder && key) {
        files.count++
        files.bytes += size
        await listener.file(folder, key, size, hashed)
        for await (const _unread of hashed);
      } else if (name === HEAD && entries === 1) {
        const text = await wholeOf({ name, size, bytes: hashed }, MAX_DESCRIPTION_BYTES, this.#file)
        if (text !== JSON.stringify(this.head)) unfit(this.#file, () => parseHead(text, VERSIONS.version))
      } else throw this.#corrupted(`it has an entry ${JSON.stringify(name.slice(0, 100))}`)
    }
    if (!manifest) throw new Error(`${this.#file} is not complete: its end is missing.`)
    listener.end?.()
    if (manifest.sha256 !== digest.slice(0, 64)) throw this.#corrupted('its SHA-256 differs from its manifest')
    const kinds = new Set([...Object.keys(manifest.records), ...records.keys()])
    const wrong = [...kinds].find((kind) => (manifest.records[kind] ?? 0) !== (records.get(kind) ?? 0))
    if (wrong !== undefined || manifest.files.count !== files.count || manifest.files.bytes !== files.bytes)
      throw this.#corrupted(`its counts${wrong === undefined ? '' : ` of ${wrong}`} differ from its manifest`)
    this.#digest ??= digest
    if (this.#digest !== digest) throw new Error(`${this.#file} changed while it was read.`)
    return manifest
  }

  #parse(name: string, text: string): readonly unknown[] {
    const lines = text.split('\n', MAX_PART_LINES + 2)
    if (lines.length > MAX_PART_LINES + 1) throw this.#corrupted(`${name} has too many lines`)
    if (lines.pop() !== '' || lines.length === 0) throw this.#corrupted(`${name} does not end with a line`)
    return lines.map((line, i) => {
      try {
        return JSON.parse(line) as unknown
      } catch (error) {
        throw this.#corrupted(`line ${i + 1} of ${name} is not JSON`, error)
      }
    })
  }

  #corrupted(why: string, cause?: unknown): Error {
    return new Error(`${this.#file} is corrupted: ${why}.`, { cause })
  }
}

/** @throws {Error} the file cannot be read, or is no compressed tar of plain files */
async function* entriesOf(file: string): AsyncGenerator<Entry> {
  let between = 0
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      between += chunk.length
      if (between > MAX_BETWEEN_BYTES) done(new Error('it has data that is not an entry'))
      else done(null, chunk)
    },
  })
  const tar = extract()
  const source = createReadStream(file)
  const unzipped = createZstdDecompress()
  const fail = (error: Error) => tar.destroy(error)
  for (const stream of [source, unzipped, counted]) stream.on('error', fail)
  source.pipe(unzipped).pipe(counted).pipe(tar)
  try {
    for await (const entry of tar) {
      const { name, size, type, pax } = entry.header as Headers & { readonly pax?: unknown }
      if (type !== 'file' || pax || !Number.isSafeInteger(size) || size! < 0)
        throw new Error(`it has an entry ${JSON.stringify(name.slice(0, 100))}`)
      // The bytes of an entry are read as a stream.
      between = Number.NEGATIVE_INFINITY
      yield { name, size: size!, bytes: entry }
      for await (const _unread of entry);
      between = 0
    }
  } catch (error) {
    throw described(file, error)
  } finally {
    for (const stream of [source, unzipped, counted, tar]) stream.destroy()
  }
}

function described(file: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException
  if (code?.startsWith('E') && !code.startsWith('ERR_')) return new Error(`${file} cannot be read: ${message}`, { cause: error })
  if (code === 'Z_BUF_ERROR' || /unexpected end/i.test(message))
    return new Error(`${file} is not complete: its end is missing.`, { cause: error })
  return new Error(`${file} is corrupted: ${message}.`, { cause: error })
}

async function* hashing(bytes: AsyncIterable<Uint8Array>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
  for await (const part of bytes) {
    hash.update(part)
    yield part
  }
}

/** @throws {Error} the entry is larger than `most` */
async function wholeOf({ name, size, bytes }: Entry, most: number, file: string): Promise<string> {
  if (size > most) throw new Error(`${file} is corrupted: ${name} is too large.`)
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return Buffer.concat(parts).toString()
}

function unfit<T>(file: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new Error(`${file} ${(error as Error).message}.`, { cause: error })
  }
}
