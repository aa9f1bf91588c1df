import { zstdCompressSync } from 'node:zlib'
import type { ArchiveSink } from '../../subgraphs/common/portable/organization-archive.ts'
import type { RecordKind } from '../../subgraphs/common/portable/record-kind.ts'
import { TarWriter } from '../backup/tar-writer.ts'
import { HEAD, type Head, MANIFEST, MAX_PART_BYTES, type Manifest, PART_BYTES } from './format.ts'

/**
 * Writes the archive of one organization: records as lines of JSON in compressed parts, files as they are. It keeps a few
 * megabytes in memory, whatever the organization has.
 */
export class OrganizationWriter implements ArchiveSink, Disposable {
  readonly #tar: TarWriter
  /** Lines that are not written yet, by kind. The order of the first line of each kind is that of the archive. */
  readonly #waiting = new Map<string, { lines: string[]; count: number }>()
  readonly #left = new Map<string, number>()
  readonly #files = { count: 0, bytes: 0 }
  #waitingBytes = 0
  #parts = 0

  /** @throws {Error} the file exists, or its folder does not take one */
  constructor(file: string, head: Head) {
    this.#tar = new TarWriter(file, 'export', { hashed: true })
    this.#tar.addEntry(HEAD, Buffer.from(JSON.stringify(head)))
  }

  get bytes(): number {
    return this.#tar.bytes
  }

  async record(kind: RecordKind<unknown>, record: object): Promise<void> {
    const line = kind.toLine(record)
    const bytes = Buffer.byteLength(line) + 1
    if (bytes + PART_BYTES > MAX_PART_BYTES) throw new Error(`A record of ${kind.name} is too large to be exported: ${bytes} bytes.`)
    const waiting = this.#waiting.get(kind.name) ?? { lines: [], count: 0 }
    this.#waiting.set(kind.name, waiting)
    waiting.lines.push(line)
    waiting.count++
    this.#waitingBytes += bytes
    if (this.#waitingBytes >= PART_BYTES) this.#flush()
  }

  async file(path: string, sizeBytes: number, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    this.#flush()
    await this.#tar.addStream(path, sizeBytes, bytes)
    this.#files.count++
    this.#files.bytes += sizeBytes
  }

  leave(what: string): void {
    this.#left.set(what, (this.#left.get(what) ?? 0) + 1)
  }

  finish(moment: Pick<Manifest, 'from' | 'to'>): Manifest {
    this.#flush()
    const manifest: Manifest = {
      ...moment,
      records: Object.fromEntries([...this.#waiting].map(([name, { count }]) => [name, count])),
      files: this.#files,
      left: Object.fromEntries(this.#left),
      sha256: this.#tar.sha256,
    }
    this.#tar.addEntry(MANIFEST, Buffer.from(JSON.stringify(manifest)))
    this.#tar.finish()
    return manifest
  }

  [Symbol.dispose](): void {
    this.#tar[Symbol.dispose]()
  }

  /** What a record refers to is of an earlier kind, or was written before. */
  #flush(): void {
    for (const [name, waiting] of this.#waiting) {
      if (waiting.lines.length === 0) continue
      const number = String(++this.#parts).padStart(8, '0')
      this.#tar.addEntry(`records/${name}/${number}.jsonl.zst`, zstdCompressSync(`${waiting.lines.join('\n')}\n`))
      waiting.lines = []
    }
    this.#waitingBytes = 0
  }
}
