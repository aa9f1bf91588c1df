import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { Header } from 'tar/header'
import { type Manifest, PIECE_BYTES, parseManifest, sha256 } from './manifest.ts'
import { BLOCK_BYTES } from './tar-writer.ts'

/** A compressed piece is hardly larger than the piece. */
const MAX_ENTRY_BYTES = PIECE_BYTES + 64 * 1024
/** Describes 3 TB. It is read at once. */
const MAX_MANIFEST_BYTES = 256 * 1024 * 1024
/** Backups of which each needs the one before. Each is an open file. */
const MAX_CHAIN = 400

const PIECE_NAME = /^pieces\/([0-9a-f]{64})\.zst$/
const MANIFEST_NAME = /^manifest-([0-9a-f]{64})\.json$/

interface Place {
  readonly offset: number
  readonly bytes: number
}

/** An archive that is complete. Its pieces are checked when they are read. */
export class Archive implements Disposable {
  readonly file: string
  readonly manifest: Manifest
  readonly #descriptor: number
  readonly #pieces = new Map<string, Place>()

  /** @throws {Error} it is no backup, is not complete or damaged, or is newer than this program */
  constructor(file: string, version: string) {
    this.file = file
    this.#descriptor = opened(file)
    try {
      this.manifest = this.#readManifest(this.#index(), version)
    } catch (error) {
      closeSync(this.#descriptor)
      throw error
    }
  }

  has(digest: string): boolean {
    return this.#pieces.has(digest)
  }

  /** @throws {Error} the archive is damaged */
  read(digest: string): Uint8Array {
    const compressed = this.#readAt(this.#pieces.get(digest)!)
    let bytes: Uint8Array
    try {
      bytes = zstdDecompressSync(compressed, { maxOutputLength: PIECE_BYTES })
    } catch (error) {
      throw this.#unfit(`is damaged: the piece ${digest} cannot be unpacked`, error)
    }
    if (sha256(bytes) !== digest) throw this.#unfit(`is damaged: the piece ${digest} has another SHA-256`)
    return bytes
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }

  /** Reads the headers of all entries, and gives the place of the manifest with its digest. */
  #index(): Place & { readonly digest: string } {
    const { size } = fstatSync(this.#descriptor)
    const block = Buffer.alloc(BLOCK_BYTES)
    for (let offset = 0; offset + BLOCK_BYTES <= size; ) {
      readSync(this.#descriptor, block, 0, BLOCK_BYTES, offset)
      const header = toHeader(block)
      if (!header) throw this.#unfit(offset === 0 ? 'is not a backup' : 'is damaged: it has something else than entries')
      const { path = '', size: bytes = -1, type } = header
      const place = { offset: offset + BLOCK_BYTES, bytes }
      const next = place.offset + Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
      const [, piece] = PIECE_NAME.exec(path) ?? []
      const [, digest] = MANIFEST_NAME.exec(path) ?? []
      const isOurs =
        type === 'File' && ((piece && bytes >= 0 && bytes <= MAX_ENTRY_BYTES) || (digest && bytes >= 0 && bytes <= MAX_MANIFEST_BYTES))
      if (!isOurs) throw this.#unfit(`is not a backup: it has an entry ${JSON.stringify(path.slice(0, 100))}`)
      if (next > size) break
      if (digest) return { ...place, digest }
      this.#pieces.set(piece!, place)
      offset = next
    }
    throw this.#unfit('is not complete: its end is missing')
  }

  #readManifest({ digest, ...place }: Place & { readonly digest: string }, version: string): Manifest {
    const bytes = this.#readAt(place)
    if (sha256(bytes) !== digest) throw this.#unfit('is damaged: its manifest has another SHA-256')
    try {
      return parseManifest(bytes.toString(), version)
    } catch (error) {
      throw this.#unfit((error as Error).message, error)
    }
  }

  #readAt({ offset, bytes }: Place): Buffer {
    const buffer = Buffer.alloc(bytes)
    for (let read = 0; read < bytes; ) {
      const count = readSync(this.#descriptor, buffer, read, bytes - read, offset + read)
      if (count === 0) throw this.#unfit('is not complete: it was cut while it was read')
      read += count
    }
    return buffer
  }

  #unfit(why: string, cause?: unknown): Error {
    return new Error(`${this.file} ${why}.`, { cause })
  }
}

/**
 * A backup with the earlier ones that have its other pieces. `elsewhere` has archives by other names or in other
 * folders; those that are not named are looked for beside the one that needs them.
 */
export class ArchiveChain implements Disposable {
  readonly #archives: Archive[] = []

  /** @throws {Error} as `Archive`; or an earlier backup is missing, or is another one, or a piece is in none of them */
  constructor(file: string, elsewhere: readonly string[], version: string) {
    try {
      this.#open(file, elsewhere, version)
    } catch (error) {
      this[Symbol.dispose]()
      throw error
    }
  }

  get manifest(): Manifest {
    return this.#archives[0]!.manifest
  }

  /** @throws {Error} the archive is damaged */
  read(digest: string): Uint8Array {
    return this.#holder(digest)!.read(digest)
  }

  [Symbol.dispose](): void {
    for (const archive of this.#archives.splice(0)) archive[Symbol.dispose]()
  }

  #open(file: string, elsewhere: readonly string[], version: string): void {
    const others = [...elsewhere]
    for (let next = file; ; ) {
      const archive = new Archive(next, version)
      const wanted = this.#archives.at(-1)?.manifest.since
      this.#archives.push(archive)
      if (wanted && archive.manifest.id !== wanted.id)
        throw new Error(
          `${next} is another backup than the one that ${this.#archives.at(-2)!.file} was made since. Name that one by --since.`,
        )
      const { since } = archive.manifest
      if (!since) break
      if (this.#archives.length === MAX_CHAIN) throw new Error(`${file} needs more than ${MAX_CHAIN} earlier backups.`)
      next = others.shift() ?? join(dirname(next), basename(since.name))
    }
    const lost = this.manifest.files.find(({ pieces }) => pieces.some((digest) => !this.#holder(digest)))
    if (lost) throw new Error(`${file} is damaged: pieces of ${lost.name} are missing.`)
  }

  #holder(digest: string): Archive | undefined {
    return this.#archives.find((archive) => archive.has(digest))
  }
}

/** @throws {Error} the file cannot be read */
export function opened(file: string): number {
  try {
    return openSync(file, 'r')
  } catch (error) {
    throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** Null: the block is not a header. */
export function toHeader(block: Buffer): Header | null {
  try {
    const header = new Header(block)
    return header.cksumValid && !header.nullBlock ? header : null
  } catch {
    return null
  }
}
