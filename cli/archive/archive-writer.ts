import { createHash, randomBytes } from 'node:crypto'
import { closeSync, createWriteStream, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import { type Pack, pack } from 'tar-stream'
import type { ArchiveSink } from '../../subgraphs/common/portable/organization-archive.ts'
import { HEAD, type Head, MANIFEST, MAX_PART_BYTES, type Manifest, PART_BYTES } from './format.ts'

/** The suffix of an archive's name until the archive is complete. */
const PART = /^[0-9a-f]{12}\.part$/

/**
 * Writes an archive: a tar of records as lines of JSON and of bytes, compressed by zstd. It holds a few megabytes in
 * memory. The file gets its name when it is complete and on disk.
 */
export class ArchiveWriter implements ArchiveSink, AsyncDisposable {
  readonly #file: string
  readonly #part: string
  readonly #tar: Pack = pack()
  readonly #written: Promise<void>
  readonly #hash = createHash('sha256')
  /** Unwritten lines by kind. The order of the first line of each kind is that of the archive. */
  readonly #waiting = new Map<string, { lines: string[]; count: number }>()
  readonly #left = new Map<string, number>()
  readonly #files = { count: 0, bytes: 0 }
  #waitingBytes = 0
  #parts = 0

  private constructor(file: string) {
    this.#file = file
    this.#part = `${file}.${randomBytes(6).toString('hex')}.part`
    const descriptor = openSync(this.#part, 'wx', 0o600)
    this.#written = pipeline(this.#tar, createZstdCompress(), createWriteStream('', { fd: descriptor, flush: true }))
    // The next call that adds an entry reports the failure.
    this.#written.catch(() => undefined)
  }

  /** @throws {Error} the file exists, or its folder is not writable */
  static async create(file: string, head: Head): Promise<ArchiveWriter> {
    if (existsSync(file)) throw new Error(`${file} already exists. Give the export another name.`)
    removeParts(file)
    const writer = new ArchiveWriter(file)
    await writer.#entry(HEAD, Buffer.from(JSON.stringify(head)))
    return writer
  }

  async record(kind: { readonly name: string; toLine(record: object): string }, record: object): Promise<void> {
    await this.line(kind.name, kind.toLine(record))
  }

  /** Adds a record as a line of JSON. */
  async line(kind: string, line: string): Promise<void> {
    const bytes = Buffer.byteLength(line) + 1
    if (bytes + PART_BYTES > MAX_PART_BYTES) throw new Error(`A record of ${kind} is too large to be exported: ${bytes} bytes.`)
    const waiting = this.#waiting.get(kind) ?? { lines: [], count: 0 }
    this.#waiting.set(kind, waiting)
    waiting.lines.push(line)
    waiting.count++
    this.#waitingBytes += bytes
    if (this.#waitingBytes >= PART_BYTES) await this.#flush()
  }

  /** Adds bytes after the records that were added before. */
  async file(path: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array> | Uint8Array): Promise<void> {
    await this.#flush()
    await this.#entry(path, bytes, sizeBytes)
    this.#files.count++
    this.#files.bytes += sizeBytes
  }

  skip(what: string, count = 1): void {
    this.#left.set(what, (this.#left.get(what) ?? 0) + count)
  }

  /** @throws {Error} the disk is full, or another export to the same file has started */
  async finish(moment: Pick<Manifest, 'from' | 'to'>): Promise<{ readonly manifest: Manifest; readonly bytes: number }> {
    await this.#flush()
    const manifest: Manifest = {
      ...moment,
      records: Object.fromEntries([...this.#waiting].map(([name, { count }]) => [name, count])),
      files: this.#files,
      left: Object.fromEntries(this.#left),
      sha256: this.#hash.copy().digest('hex'),
    }
    await this.#entry(MANIFEST, Buffer.from(JSON.stringify(manifest)))
    this.#tar.finalize()
    await this.#written
    if (existsSync(this.#file) || !existsSync(this.#part))
      throw new Error(`Another export to ${this.#file} has begun. Give each export its own name.`)
    renameSync(this.#part, this.#file)
    syncFolder(dirname(this.#file))
    return { manifest, bytes: statSync(this.#file).size }
  }

  /** Removes an incomplete file. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#tar.destroy()
    await this.#written.catch(() => undefined)
    rmSync(this.#part, { force: true })
  }

  /**
   * Writes the waiting lines. A record refers only to records of an earlier kind, or to records that were written
   * before.
   */
  async #flush(): Promise<void> {
    for (const [name, waiting] of this.#waiting) {
      if (waiting.lines.length === 0) continue
      const text = `${waiting.lines.join('\n')}\n`
      waiting.lines = []
      await this.#entry(`records/${name}/${String(++this.#parts).padStart(8, '0')}.jsonl`, Buffer.from(text))
    }
    this.#waitingBytes = 0
  }

  /** @throws {Error} there are more or fewer bytes than `size`, or the disk fails */
  async #entry(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>, size = (bytes as Uint8Array).length): Promise<void> {
    this.#hash.update(`${name} ${size}\n`)
    const ended = Promise.withResolvers<void>()
    const entry = this.#tar.entry({ name, size, mode: 0o600, mtime: new Date(0) }, (error) =>
      error ? ended.reject(error) : ended.resolve(),
    )
    entry.on('error', ended.reject)
    // The stream of the entry does not report a failure of the file.
    const failed = this.#written.then(() => Promise.reject(new Error(`${this.#part} was closed.`)))
    failed.catch(() => undefined)
    ended.promise.catch(() => undefined)
    let written = 0
    for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) {
      written += part.length
      if (written > size) break
      this.#hash.update(part)
      if (entry.write(part)) continue
      await Promise.race([new Promise((resolve) => entry.once('drain', resolve)), ended.promise, failed])
    }
    if (written !== size) throw new Error(`${name} has ${written} bytes instead of ${size}.`)
    entry.end()
    await Promise.race([ended.promise, failed])
  }
}

/** Makes the names in a folder durable against a power loss. Windows has no such call and needs none. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Removes the partial files of killed exports to this file. */
function removeParts(file: string): void {
  const prefix = `${basename(file)}.`
  for (const name of readdirSync(dirname(file)))
    if (name.startsWith(prefix) && PART.test(name.slice(prefix.length))) rmSync(join(dirname(file), name), { force: true })
}
