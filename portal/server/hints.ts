import type { Language } from '../../subgraphs/common/languages.ts'

/** Vite's manifest: the built files by the path of their source. */
type Manifest = Readonly<Record<string, { readonly file: string; readonly name?: string; readonly imports?: readonly string[] }>>

/** Fonts that nearly every page shows, as `portal/build/fonts.ts` names them. */
const COMMON_FONT = /-common-[\w-]+\.woff2$/
const ARABIC = /arabic/
/** Messages that every page shows, in the reader's language. */
const COMMON_MESSAGES = 'common'
/** Messages that a page shows in addition to those of its own name. */
const MORE_MESSAGES: Readonly<Record<string, readonly string[]>> = {
  home: ['documents', 'wallet'],
  collections: ['documents', 'models'],
  operator: ['wallet'],
  organization: ['models', 'wallet'],
  wallet: ['usage'],
}
/** The module that the first script runs after the first paint. */
const APPLICATION = 'src/main.tsx'

/**
 * Writes preload links to the files that a page needs. The browser then loads them at once, not one after the other.
 */
export class Hints {
  readonly #manifest: Manifest
  /** Manifest keys of files that hold several sources. */
  readonly #named: ReadonlyMap<string, string>

  constructor(manifest: Manifest) {
    this.#manifest = manifest
    this.#named = new Map(Object.entries(manifest).flatMap(([key, { name }]) => (key.startsWith('_') && name ? [[name, key]] : [])))
  }

  /**
   * Returns the links for a path of the portal. The module of `/agents` is `agents-page.tsx`, that of `/agents/agt_1`
   * is `agent-page.tsx`. A module with another name is loaded when the page needs it.
   */
  of(path: string, language: Language): string {
    const [, page = '', id] = path.split('/')
    // `portal/vite.config.ts` puts some messages into one file.
    const messages = [COMMON_MESSAGES, page, ...(MORE_MESSAGES[page] ?? [])].map(
      (name) => this.#named.get(`${name}-${language}`) ?? `messages/${language}/${name}.json`,
    )
    const modules = new Set<string>()
    for (const source of [APPLICATION, ...messages, `src/pages/${page}/${id ? page.replace(/s$/, '') : page}-page.tsx`])
      this.#add(source, modules)
    const fonts = Object.values(this.#manifest)
      .map(({ file }) => file)
      .filter((file) => COMMON_FONT.test(file) && (language === 'ar' || !ARABIC.test(file)))
    return [
      ...fonts.map((file) => `<link rel="preload" href="/${file}" as="font" type="font/woff2" crossorigin>`),
      ...[...modules].map((file) => `<link rel="modulepreload" href="/${file}" fetchpriority="low" crossorigin>`),
    ].join('')
  }

  /** Adds the file of a source and those that it imports. */
  #add(source: string, files: Set<string>): void {
    const chunk = this.#manifest[source]
    if (!chunk || files.has(chunk.file)) return
    files.add(chunk.file)
    for (const each of chunk.imports ?? []) this.#add(each, files)
  }
}
