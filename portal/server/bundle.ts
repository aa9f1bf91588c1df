import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { LANGUAGES, type Language } from '../../subgraphs/common/languages.ts'

/** Files of `assets/`, without their compressed copies. A bundle has some hundred, of a few megabytes. */
const MAX_FILES = 2_000
const MAX_BYTES = 64 * 1024 * 1024

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
  /** Compressed when the bundle was built; undefined: it would not get smaller. */
  readonly br: Buffer | undefined
  readonly gzip: Buffer | undefined
}

/** The built portal, in memory: whatever happens to its folder, what is served fits together. */
export interface Bundle {
  readonly page: Readonly<Record<Language, { readonly html: string; readonly etag: string }>>
  /** By the name below `/assets/`. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** @throws {Error} the folder holds no bundle, or one that is too large */
export async function loadBundle(folder: string): Promise<Bundle> {
  const html = await readFile(join(folder, 'index.html'), 'utf8')
  const names = await readdir(join(folder, 'assets'))
  const files = names.filter((name) => TYPES[extname(name)])
  if (files.length > MAX_FILES) throw new Error(`The portal has more than ${MAX_FILES} files.`)
  const all = new Set(names)
  const read = (name: string) => (all.has(name) ? readFile(join(folder, 'assets', name)) : undefined)
  const assets = new Map<string, Asset>()
  let totalBytes = 0
  for (const name of files) {
    const [bytes, br, gzip] = await Promise.all([read(name), read(`${name}.br`), read(`${name}.gz`)])
    totalBytes += bytes!.length + (br?.length ?? 0) + (gzip?.length ?? 0)
    if (totalBytes > MAX_BYTES) throw new Error(`The portal has more than ${MAX_BYTES} bytes.`)
    assets.set(name, { type: TYPES[extname(name)]!, bytes: bytes!, br, gzip })
  }
  const page = Object.fromEntries(LANGUAGES.map((language) => [language, toPage(html, language)])) as Bundle['page']
  return { page, assets }
}

/** The direction is right from the first paint on, before any script runs. */
function toPage(source: string, language: Language) {
  const html = source.replace(/<html[^>]*>/, `<html lang="${language}" dir="${language === 'ar' ? 'rtl' : 'ltr'}">`)
  return { html, etag: `"${createHash('sha256').update(html).digest('base64url').slice(0, 22)}"` }
}
