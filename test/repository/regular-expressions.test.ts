import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { check } from 'recheck'
import { afterAll, describe, expect, it } from 'vitest'
import { parseAst } from 'vitest/node'
import { COMPOSED_EXPRESSIONS } from '../../subgraphs/common/untrusted-text.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Not linear, and never given more than this. By source. */
const SHORT_TEXTS: Readonly<Record<string, string>> = {
  '<meta[^>]{0,200}charset\\s*=\\s*["\']?([\\w-]{1,40})': 'the first 1,024 bytes of a page',
  '\\/+$': 'addresses in the configuration of the operator',
  '\\$\\{([A-Za-z_]\\w*)(?::-([^}]*))?\\}': 'the catalog of the operator',
  '0+$': 'nine digits',
  '^ *"""(?:[^"\\n]+"""|[\\s\\S]*?\\n *""")\\n': 'the schema of the product, at a release',
  '^invalid model\\b|model identifier is invalid|model .{0,200}\\b(decommissioned|end of its life)':
    'the first 1,000 characters of a message',
}
/** Too large for recheck. Every repeat in them has a limit, and they are timed. */
const TIMED_ALONE = ['__(?=\\S)((?:', 'prompt is too long|', '!?\\[([^[\\]\\n]{0,1000})\\]\\(']
/**
 * Made of constants of the product. By file. Those of `foreign-text.ts` meet documents, and are timed. Those of
 * `redact-secrets.ts` are alternatives of escaped literals.
 */
const COMPOSED_IN = [
  'cli/links/response-timeout.ts',
  'schema/breaks.ts',
  'schema/generate.ts',
  'subgraphs/billing/accounts/domain/api-key.ts',
  'subgraphs/common/documents/lists.ts',
  'subgraphs/common/link/connection.ts',
  'subgraphs/common/untrusted-text.ts',
  'subgraphs/inference/adapters/embedded/tokenizer/word-tokenizer.ts',
  'subgraphs/inference/domain/redact-secrets.ts',
]

interface Literal {
  readonly source: string
  readonly flags: string
  /** `file:line` of the first place. */
  readonly location: string
}

interface Node {
  readonly type?: unknown
  readonly start?: number
  readonly callee?: { readonly name?: string }
  readonly regex?: { readonly pattern: string; readonly flags: string }
}

function* findNodes(node: unknown): Generator<Node> {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node) yield node
  for (const value of Object.values(node)) yield* findNodes(value)
}

/** Every expression of the product, once, and the files that make some at run time. */
function expressionsOfProduct(): { readonly literals: readonly Literal[]; readonly makers: readonly string[] } {
  const literals = new Map<string, Literal>()
  const makers = new Set<string>()
  const files = globSync('{subgraphs,gateway,rest-adapter,schema,cli}/**/*.{ts,js}', { cwd: ROOT })
  const isProduct = (file: string) => !/\.test\.ts$|\.d\.ts$|\/(?:testing|test-support|__fixtures__)\//.test(file)
  for (const file of files.filter(isProduct).sort()) {
    const code = stripTypeScriptTypes(readFileSync(`${ROOT}/${file}`, 'utf8'))
    for (const { type, start = 0, callee, regex } of findNodes(parseAst(code))) {
      if ((type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp') makers.add(file)
      if (!regex) continue
      const { pattern: source, flags } = regex
      const location = `${file}:${code.slice(0, start).split('\n').length}`
      literals.set(`/${source}/${flags}`, literals.get(`/${source}/${flags}`) ?? { source, flags, location })
    }
  }
  return { literals: [...literals.values()], makers: [...makers] }
}

/**
 * A text of so many characters, with an end that fits nothing, takes no expression longer than this; a quadratic one
 * takes at least ten seconds.
 */
const MAX_MS = 2_000
const TEXT_LENGTH = 300_000
const PUMPS = [
  ...[
    '\n',
    ' ',
    '\t',
    '\r',
    '"',
    "'",
    '`',
    '*',
    '_',
    '[',
    ']',
    '(',
    '|',
    '-',
    '#',
    'a',
    '0',
    '=',
    ':',
    '/',
    '\\',
    '.',
    '>',
    '<',
    '@',
    '!',
    'ا',
    '\u2028',
  ],
  ...[
    ' \n',
    '\t\n ',
    '<!--',
    '](',
    '[](',
    '[a][',
    '{{',
    '${a',
    '"\\',
    '__a ',
    '**a ',
    '*a ',
    '``',
    '<a',
    '<meta',
    ' .',
    'a.',
    'a: ',
    ' - ',
    '1.',
    '| ',
    '|-',
    '```\n',
    '{"a":',
    '[#',
    '[#1',
    '[ ',
    '<|',
    '|>',
    '< /a',
  ],
]

/** Applies expressions to texts in a thread, which is ended when one takes too long. */
class Clocked implements AsyncDisposable {
  #worker: Worker | undefined

  /** Milliseconds; infinite: it was ended. */
  async time({ source, flags }: Literal, text: string): Promise<number> {
    this.#worker ??= new Worker(
      `const { parentPort } = require('node:worker_threads')
      parentPort.on('message', ({ source, flags, text }) => {
        const expression = new RegExp(source, flags)
        const begun = performance.now()
        if (flags.includes('g')) text.replace(expression, '')
        else expression.exec(text)
        parentPort.postMessage(performance.now() - begun)
      })`,
      { eval: true },
    )
    const worker = this.#worker
    const { promise, resolve } = Promise.withResolvers<number>()
    worker.once('message', resolve)
    worker.postMessage({ source, flags, text })
    const timer = setTimeout(() => resolve(Number.POSITIVE_INFINITY), 5 * MAX_MS)
    const ms = await promise
    clearTimeout(timer)
    if (ms === Number.POSITIVE_INFINITY) await this[Symbol.asyncDispose]()
    return ms
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }
}

describe('Regular expressions of the product', () => {
  const { literals, makers } = expressionsOfProduct()
  const judged = literals.filter(({ source }) => !(source in SHORT_TEXTS))
  const clock = new Clocked()
  afterAll(() => clock[Symbol.asyncDispose]())

  it('are all found, and built at run time only from constants', () => {
    expect(literals.length).toBeGreaterThan(200)
    expect(makers).toEqual(COMPOSED_IN)
    const sources = new Set(literals.map(({ source }) => source))
    expect(Object.keys(SHORT_TEXTS).filter((source) => !sources.has(source))).toEqual([])
    for (const start of TIMED_ALONE) expect([...sources].filter((source) => source.startsWith(start)).length, start).toBe(1)
  })

  it('are linear, as recheck proves', { timeout: 300_000 }, async () => {
    const found: string[] = []
    for (const { source, flags, location } of judged) {
      if (TIMED_ALONE.some((start) => source.startsWith(start))) continue
      const { status } = await check(source, flags, { timeout: 60_000 })
      if (status !== 'safe') found.push(`${location} /${source}/${flags} is ${status}`)
    }
    expect(found).toEqual([])
  })

  it('that recheck cannot judge match a long repetitive text in time', { timeout: 600_000 }, async () => {
    const texts = PUMPS.map((pump) => ({ pump, text: `${pump.repeat(TEXT_LENGTH / pump.length)}\u0000` }))
    const slow: string[] = []
    const composed = COMPOSED_EXPRESSIONS.map(({ source, flags }) => ({ source, flags, location: 'subgraphs/common/untrusted-text.ts' }))
    const alone = judged.filter(({ source }) => TIMED_ALONE.some((start) => source.startsWith(start)))
    for (const literal of [...alone, ...composed])
      for (const { pump, text } of texts) {
        const ms = await clock.time(literal, text)
        if (ms > MAX_MS) slow.push(`${literal.location} /${literal.source}/ takes ${ms} ms for ${JSON.stringify(pump)}`)
      }
    expect(slow).toEqual([])
  })
})
