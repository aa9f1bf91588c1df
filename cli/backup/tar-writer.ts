import { createHash, type Hash, randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Header } from 'tar/header'

/** The unit of a tar archive. */
export const BLOCK_BYTES = 512

/** What a name that is not final has after the archive's own. SQLite has a journal beside a copy. */
const PART = /^[0-9a-f]{12}(?:-copy)?\.part(?:-journal)?$/

/** Writes one tar archive. The file gets its name when it is complete and on the disk. */
export class TarWriter implements Disposable {
  readonly #file: string
  readonly #what: string
  readonly #part: string
  readonly #descriptor: number
  readonly #hash: Hash | null
  #bytes = 0

  /**
   * @param what names the archive in errors: `backup`
   * @throws {Error} the file exists, or its folder does not take one
   */
  constructor(file: string, what: string, { hashed = false }: { readonly hashed?: boolean } = {}) {
    if (existsSync(file)) throw new Error(`${file} is there already: give the ${what} another name.`)
    removeParts(file)
    this.#file = file
    this.#what = what
    this.#hash = hashed ? createHash('sha256') : null
    this.#part = partName(file)
    this.#descriptor = openSync(this.#part, 'wx', 0o600)
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** The SHA-256 of the bytes written so far, if the archive is `hashed`. */
  get sha256(): string {
    return this.#hash!.copy().digest('hex')
  }

  /** The name of a file for the caller's use, which a later writer removes if this one is killed. */
  get besideName(): string {
    return `${this.#part.slice(0, -'.part'.length)}-copy.part`
  }

  addEntry(path: string, bytes: Uint8Array): void {
    this.#begin(path, bytes.length)
    this.#write(bytes)
    this.#end(bytes.length)
  }

  /** @throws {Error} there are more or fewer bytes than `size` */
  async addStream(path: string, size: number, parts: AsyncIterable<Uint8Array>): Promise<void> {
    this.#begin(path, size)
    let written = 0
    for await (const part of parts) {
      written += part.length
      this.#write(part)
    }
    if (written !== size) throw new Error(`${path} has ${written} bytes instead of ${size}.`)
    this.#end(size)
  }

  /** @throws {Error} the disk is full, or another writer of the same file has begun */
  finish(): void {
    this.#write(Buffer.alloc(2 * BLOCK_BYTES))
    fsyncSync(this.#descriptor)
    if (existsSync(this.#file) || !existsSync(this.#part))
      throw new Error(`Another ${this.#what} to ${this.#file} has begun: give each its own name.`)
    renameSync(this.#part, this.#file)
    syncFolder(dirname(this.#file))
  }

  /** Removes what is not complete. */
  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
    rmSync(this.#part, { force: true })
  }

  #begin(path: string, size: number): void {
    const header = new Header({ path, size, type: 'File', mode: 0o600, mtime: new Date(0) })
    const block = Buffer.alloc(BLOCK_BYTES)
    header.encode(block)
    this.#write(block)
  }

  #end(size: number): void {
    this.#write(Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES))
  }

  #write(bytes: Uint8Array): void {
    // Unlike `writeSync`, it writes all of them.
    writeFileSync(this.#descriptor, bytes)
    this.#hash?.update(bytes)
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
