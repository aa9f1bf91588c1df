import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { Language } from '../../subgraphs/common/languages.ts'
import { Hints } from './hints.ts'

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

interface Page {
  readonly html: Asset
  readonly etag: string
}

/** The built portal, in memory: whatever happens to its folder, what is served fits together. */
export interface Bundle {
  /** `hasSession`: the frame of the page shows at once, with its head. */
  page(path: string, language: Language, hasSession: boolean): Page
  /** By the name below `/assets/`. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** @throws {Error} the folder holds no bundle, or one that is too large */
export async function loadBundle(folder: string, publicUrl: string | null): Promise<Bundle> {
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
  const readJson = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8').catch(() => '{}'))
  const hints = new Hints(await readJson('manifest.json'))
  const heads: Heads = await readJson('heads.json')
  /** By what is in them: a few for each page. */
  const pages = new Map<string, Page>()
  const page: Bundle['page'] = (path, language, hasSession) => {
    const [, name = '', ...below] = path.split('/')
    const links = hints.of(path, language)
    // What is below a page has a head of its own.
    const head = !hasSession || name === 'sign-in' ? null : below.length === 0 ? name : ''
    const key = JSON.stringify([language, links, head])
    const rendered = pages.get(key) ?? toPage(html, language, publicUrl, links, head, heads[language] ?? {})
    pages.set(key, rendered)
    return rendered
  }
  return { page, assets }
}

/** The messages of the heads of pages, such as `home.title`. */
type Heads = Readonly<Partial<Record<Language, Readonly<Record<string, string>>>>>

/**
 * The direction is right from the first paint on, before any script runs. `head`: the page whose title and lead show
 * until then; null: no frame shows.
 */
function toPage(
  source: string,
  language: Language,
  publicUrl: string | null,
  hints: string,
  head: string | null,
  texts: Readonly<Record<string, string>>,
): Page {
  const framed = head === null ? '' : ' data-framed'
  // An origin has no character that ends an attribute.
  const address = publicUrl === null ? '' : ` data-public-url="${publicUrl}"`
  const written = (part: 'title' | 'lead') => escapeHtml(texts[`${head}.${part}`] ?? '')
  const html = source
    .replace(/<html[^>]*>/, `<html lang="${language}" dir="${language === 'ar' ? 'rtl' : 'ltr'}"${framed}${address}>`)
    .replace('<!--title-->', () => written('title'))
    .replace('<!--lead-->', () => written('lead'))
    .replace('</head>', `${hints}</head>`)
  const bytes = Buffer.from(html)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { html: { type: 'text/html; charset=utf-8', bytes, br: brotliCompressSync(bytes), gzip: gzipSync(bytes) }, etag }
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;' }
const escapeHtml = (text: string) => text.replace(/[&<]/g, (character) => ENTITIES[character]!)
