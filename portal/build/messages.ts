import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from '@formatjs/icu-messageformat-parser'
import type { Plugin } from 'vite'

const FOLDER = fileURLToPath(new URL('../web/messages/', import.meta.url))
const FILE = /\/messages\/[a-z]+\/[\w-]+\.json$/
/** Characters of message syntax. A message without them is plain text. */
const SYNTAX = /[{}<>']/
/** Messages in the head of a page. */
const HEAD = /^[a-z]+\.(?:title|lead)$/

type Texts = Readonly<Record<string, string>>

/**
 * Parses the messages when the portal is built, so that the portal needs no parser. A message that is plain text stays
 * text. `heads.json` gets the titles and leads of the pages in each language, for the service to write into the HTML.
 */
export function messages(): Plugin {
  return {
    name: 'messages',
    enforce: 'pre',
    transform(code, id) {
      if (!FILE.test(id)) return null
      const parsed = Object.entries(JSON.parse(code) as Texts).map(([key, text]) => [
        key,
        SYNTAX.test(text) ? parse(text, { ignoreTag: true }) : text,
      ])
      return { code: JSON.stringify(Object.fromEntries(parsed)), map: null }
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'heads.json', source: JSON.stringify({ en: headsOf('en'), ar: headsOf('ar') }) })
    },
  }
}

function headsOf(language: string): Texts {
  const folder = `${FOLDER}${language}/`
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const texts = files.flatMap((name) => Object.entries(JSON.parse(readFileSync(folder + name, 'utf8')) as Texts))
  return Object.fromEntries(texts.filter(([key, text]) => HEAD.test(key) && !SYNTAX.test(text)))
}
