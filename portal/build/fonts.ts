import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import subsetFont from 'subset-font'
import type { Plugin } from 'vite'

const { resolve } = createRequire(import.meta.url)
/** What was made is kept here. The names change with what is in the files. */
const CACHE_DIRECTORY = fileURLToPath(new URL('../../node_modules/.cache/portal-fonts', import.meta.url))
/** A change of how fonts are made makes them anew. */
const VERSION = 2
const FACE = /@font-face\s*\{[^}]*\}/g

/**
 * Makes each `@font-face` of `fonts.css` a file of its own, with the characters of its `unicode-range` and the weights
 * of its `font-weight` alone. A browser loads a file when a page has one of its characters. The first of a font is named
 * `common`, the next `rest`: the service has a browser load the common ones at once.
 */
export function fonts(): Plugin {
  return {
    name: 'fonts',
    enforce: 'pre',
    async transform(code, id) {
      if (basename(id) !== 'fonts.css') return null
      const sources = new Set<string>()
      const wanted = [...code.matchAll(FACE)].map(([face]) => {
        const source = read(face, /url\('([^']+)'\)/)
        const part = sources.has(source) ? 'rest' : 'common'
        sources.add(source)
        return { face, source, part } as const
      })
      const faces = await Promise.all(wanted.map(async (each) => write(each.face, relative(dirname(id), await createFont(each)))))
      let index = 0
      return { code: code.replace(FACE, () => faces[index++]!), map: null }
    },
  }
}

function read(face: string, property: RegExp): string {
  const [, value] = property.exec(face) ?? []
  if (!value) throw new Error(`A face of fonts.css lacks ${property.source}:\n${face}`)
  return value
}

const write = (face: string, file: string) => face.replace(/url\('[^']+'\)/, `url('${file}')`)

interface Wanted {
  readonly face: string
  readonly source: string
  readonly part: 'common' | 'rest'
}

/** Gives the file with the part of a font that a face wants. */
async function createFont({ face, source, part }: Wanted): Promise<string> {
  const ranges = read(face, /unicode-range:([^;]+);/)
  const [min, max = min] = read(face, /font-weight:([^;]+);/)
    .trim()
    .split(' ')
    .map(Number) as [number, number?]
  const font = await readFile(resolve(source))
  const digest = createHash('sha256')
    .update(JSON.stringify([VERSION, ranges, min, max]))
    .update(font)
    .digest('hex')
    .slice(0, 12)
  const file = join(CACHE_DIRECTORY, `${basename(source, '.woff2')}-${part}-${digest}.woff2`)
  if (existsSync(file)) return file
  const isVariable = source.includes('-wght-')
  const subset = await subsetFont(font, charactersOf(ranges), {
    targetFormat: 'woff2',
    // Screens of today need no hints.
    noHinting: true,
    // Latin letters: what joins and spaces them, and digits of one width. Arabic ones need all that they have.
    ...(isVariable && { keepFeatures: ['ccmp', 'kern', 'mark', 'mkmk', 'tnum'] }),
    ...(isVariable && { variationAxes: { wght: { min, max } } }),
  })
  await mkdir(CACHE_DIRECTORY, { recursive: true })
  // Another build may be making the same.
  await writeFile(`${file}.${process.pid}`, subset)
  await rename(`${file}.${process.pid}`, file)
  return file
}

/** The characters of `U+0020-007E, U+00A0`. */
function charactersOf(ranges: string): string {
  return ranges
    .split(',')
    .flatMap((range) => {
      const [from, to = from] = range
        .trim()
        .replace('U+', '')
        .split('-')
        .map((code) => Number.parseInt(code, 16)) as [number, number?]
      return Array.from({ length: to - from + 1 }, (_, index) => String.fromCodePoint(from + index))
    })
    .join('')
}
