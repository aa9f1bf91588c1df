import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { Header } from 'tar/header'
import { type Manifest, sha256 } from './manifest.ts'

/** The unit of a tar archive. */
export const BLOCK_BYTES = 512

/** What a name that is not final has after the archive's own. SQLite has a journal beside a copy. */
const PART = /^[0-9a-f]{12}(?:-copy)?\.part(?:-journal)?$/

/**
 * Writes one archive: a tar of compressed pieces, then its manifest. The file gets its name when it is complete and on
 * the disk.
 */
export class ArchiveWriter implements Disposable {
  readonly #file: string
  readonly #part: string
  readonly #descriptor: number
  readonly #added = new Set<string>()
  #bytes = 0

  /** @throws {Error} the file exists, or its folder does not take one */
  constructor(file: string) {
    if (existsSync(file)) throw new Error(`${file} is there already: give the backup another name.`)
    removeParts(file)
    this.#file = file
    this.#part = partName(file)
    this.#descriptor = openSync(this.#part, 'wx', 0o600)
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** The name of a file for the caller's use, which a later backup removes if this one is killed. */
  get besideName(): string {
    return `${this.#part.slice(0, -'.part'.length)}-copy.part`
  }

  /** Adds a piece, unless the archive has it. */
  addPiece(digest: string, bytes: Uint8Array): void {
    if (this.#added.has(digest)) return
    this.#added.add(digest)
    this.#addEntry(`pieces/${digest}.zst`, zstdCompressSync(bytes))
  }

  /** @throws {Error} the disk is full, or another backup to the same file has begun */
  finish(manifest: Manifest): void {
    const bytes = Buffer.from(JSON.stringify(manifest))
    this.#addEntry(`manifest-${sha256(bytes)}.json`, bytes)
    this.#write(Buffer.alloc(2 * BLOCK_BYTES))
    fsyncSync(this.#descriptor)
    if (existsSync(this.#file) || !existsSync(this.#part))
      throw new Error(`Another backup to ${this.#file} has begun: give each its own name.`)
    renameSync(this.#part, this.#file)
    syncFolder(dirname(this.#file))
  }

  /** Removes what is not complete. */
  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
    rmSync(this.#part, { force: true })
  }

  #addEntry(path: string, bytes: Uint8Array): void {
    const header = new Header({ path, size: bytes.length, type: 'File', mode: 0o600, mtime: new Date(0) })
    const block = Buffer.alloc(BLOCK_BYTES)
    header.encode(block)
    this.#write(block)
    this.#write(bytes)
    this.#write(Buffer.alloc((BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES))
  }

  #write(bytes: Uint8Array): void {
    // Unlike `writeSync`, it writes all of them.
    writeFileSync(this.#descriptor, bytes)
    this.#bytes += bytes.length
  }
}

/** Makes the names in a folder survive a power loss. Windows has no such call, and needs none. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function partName(file: string): string {
  return `${file}.${randomBytes(6).toString('hex')}.part`
}

/** Removes what backups to this file have left that were killed. */
function removeParts(file: string): void {
  const folder = dirname(file)
  const begin = `${basename(file)}.`
  for (const name of readdirSync(folder))
    if (name.startsWith(begin) && PART.test(name.slice(begin.length))) rmSync(join(folder, name), { force: true })
}
