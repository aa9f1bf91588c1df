export type Path = readonly (string | number)[]

/** JSON with the line of each of its values, so that a mistake can be shown where it stands. */
export type Parsed =
  | { readonly value: unknown; readonly lineOf: (path: Path) => number }
  | { readonly error: SyntaxMistake; readonly line: number; readonly column: number }

export type SyntaxMistake = 'empty' | 'value' | 'name' | 'colon' | 'comma' | 'text' | 'escape' | 'number' | 'more' | 'deep' | 'repeated'

/** The service takes no deeper JSON. */
const MAX_DEPTH = 64

class Mistake {
  readonly error: SyntaxMistake
  readonly at: number
  constructor(error: SyntaxMistake, at: number) {
    this.error = error
    this.at = at
  }
}

/** Reads JSON, and says what is wrong at the first place that is. */
export function parseSource(source: string): Parsed {
  const offsets = new Map<string, number>()
  let at = 0
  const fail = (error: SyntaxMistake, where = at): never => {
    throw new Mistake(error, where)
  }
  const skip = () => {
    while (/[ \t\r\n]/.test(source[at] ?? '')) at++
  }
  const readText = (): string => {
    const start = at
    for (at++; source[at] !== '"'; at++) {
      if (at >= source.length || source[at]! < ' ') fail('text', start)
      if (source[at] === '\\') at++
    }
    at++
    try {
      return JSON.parse(source.slice(start, at)) as string
    } catch {
      return fail('escape', start)
    }
  }
  const readWord = (): unknown => {
    const start = at
    while (/[\w+.-]/.test(source[at] ?? '')) at++
    const word = source.slice(start, at)
    try {
      return JSON.parse(word)
    } catch {
      return fail(/^[\d.+-]/.test(word) ? 'number' : 'value', start)
    }
  }
  const readList = (path: Path): unknown[] => {
    const list: unknown[] = []
    at++
    skip()
    if (source[at] === ']') {
      at++
      return list
    }
    for (;;) {
      list.push(readValue([...path, list.length]))
      skip()
      if (source[at] === ']') break
      if (source[at] !== ',') fail('comma')
      at++
    }
    at++
    return list
  }
  const readObject = (path: Path): Record<string, unknown> => {
    const entries = new Map<string, unknown>()
    at++
    skip()
    if (source[at] === '}') {
      at++
      return {}
    }
    for (;;) {
      skip()
      if (source[at] !== '"') fail('name')
      const start = at
      const name = readText()
      if (entries.has(name)) fail('repeated', start)
      skip()
      if (source[at] !== ':') fail('colon')
      at++
      offsets.set(JSON.stringify([...path, name]), start)
      entries.set(name, readValue([...path, name]))
      skip()
      if (source[at] === '}') break
      if (source[at] !== ',') fail('comma')
      at++
    }
    at++
    return Object.fromEntries(entries)
  }
  const readValue = (path: Path): unknown => {
    if (path.length > MAX_DEPTH) fail('deep')
    skip()
    const key = JSON.stringify(path)
    if (!offsets.has(key)) offsets.set(key, at)
    if (source[at] === '{') return readObject(path)
    if (source[at] === '[') return readList(path)
    if (source[at] === '"') return readText()
    return readWord()
  }
  const lineAt = (offset: number) => source.slice(0, offset).split('\n').length
  try {
    skip()
    if (at === source.length) fail('empty', 0)
    const value = readValue([])
    skip()
    if (at < source.length) fail('more')
    return {
      value,
      lineOf(path) {
        for (let length = path.length; length > 0; length--) {
          const offset = offsets.get(JSON.stringify(path.slice(0, length)))
          if (offset !== undefined) return lineAt(offset)
        }
        return lineAt(offsets.get('[]')!)
      },
    }
  } catch (mistake) {
    if (!(mistake instanceof Mistake)) throw mistake
    const line = lineAt(mistake.at)
    return { error: mistake.error, line, column: mistake.at - (source.lastIndexOf('\n', mistake.at - 1) + 1) + 1 }
  }
}

/** As the service writes paths: `nodes[2].template`. */
export function writePath(path: Path): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`
    if (!/^[A-Za-z_]\w*$/.test(step)) return `${before}[${JSON.stringify(step)}]`
    return before === '' ? step : `${before}.${step}`
  }, '')
}

/** The path that `writePath` and the service write. */
export function readPath(written: string): Path {
  return [...written.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.[\]]+)/g)].map(([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name!) : Number(index),
  )
}
