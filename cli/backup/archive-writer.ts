import { zstdCompressSync } from 'node:zlib'
import { type Manifest, sha256 } from './manifest.ts'
import { TarWriter } from './tar-writer.ts'

/** Writes one backup: a tar of compressed pieces, then its manifest. */
export class ArchiveWriter implements Disposable {
  readonly #tar: TarWriter
  readonly #added = new Set<string>()

  /** @throws {Error} the file exists, or its folder does not take one */
  constructor(file: string) {
    this.#tar = new TarWriter(file, 'backup')
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#tar.bytes
  }

  /** The name of a file for the caller's use, which a later backup removes if this one is killed. */
  get besideName(): string {
    return this.#tar.besideName
  }

  /** Adds a piece, unless the archive has it. */
  addPiece(digest: string, bytes: Uint8Array): void {
    if (this.#added.has(digest)) return
    this.#added.add(digest)
    this.#tar.addEntry(`pieces/${digest}.zst`, zstdCompressSync(bytes))
  }

  /** @throws {Error} the disk is full, or another backup to the same file has begun */
  finish(manifest: Manifest): void {
    const bytes = Buffer.from(JSON.stringify(manifest))
    this.#tar.addEntry(`manifest-${sha256(bytes)}.json`, bytes)
    this.#tar.finish()
  }

  /** Removes what is not complete. */
  [Symbol.dispose](): void {
    this.#tar[Symbol.dispose]()
  }
}
