import { KisError } from '../../../common/errors.ts'
import { RenderBudget } from './render-budget.ts'

/** Limits of an expression, its paths and its lists: far above what a person writes. */
const MAX_OPERANDS = 8
const MAX_STEPS = 20
const MAX_CALLS = 8
/** Most values of a path with `[*]`, and most characters of a text that a function returns. */
const MAX_VALUES = 10_000
export const MAX_TEXT_CHARACTERS = 262_144

/** A path to values: `nodes.find.results[*].text`. */
export interface Path {
  readonly root: Root
  /** `*`: every item. */
  readonly steps: readonly (string | number)[]
}

const ROOTS = ['inputs', 'nodes', 'item', 'index'] as const
type Root = (typeof ROOTS)[number]

interface Call {
  readonly name: FunctionName
  readonly argument: string | number | null
}

/** `a ?? b | f | g("x")`: the first value that is not null, then the functions that are applied to it in order. */
export interface Expression {
  readonly operands: readonly ({ readonly path: Path } | { readonly literal: string | number | boolean | null })[]
  readonly calls: readonly Call[]
}

/** What expressions can read. A skipped node has no output. */
export interface Scope {
  readonly inputs: unknown
  readonly nodes: Readonly<Record<string, unknown>>
  /** Set only in the node of a map. */
  readonly item?: unknown
  readonly index?: number
}

/** An expression depends on a skipped node and has no alternative. */
export class RestsOnSkipped extends Error {}

/** Function → the type of its argument. */
const FUNCTIONS = {
  json: null,
  length: null,
  first: null,
  last: null,
  lower: null,
  upper: null,
  trim: null,
  join: 'string',
  take: 'number',
  truncate: 'number',
} as const
type FunctionName = keyof typeof FUNCTIONS

const SPACE = /\s*/y
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
const NUMBER = /-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?/y
const INDEX = /\[(?:(\d{1,6})|(\*))\]/y
const STRING = /"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,1000}"/y
const QUOTED_STEP = /\[("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,200}")\]/y

/** @throws {SyntaxError} says what is wrong, and where */
export function parseExpression(text: string): Expression {
  const reader = new Reader(text, 0)
  const expression = reader.expression()
  if (reader.at !== text.length) reader.fail('more than an expression')
  return expression
}

/**
 * Reads the expression that starts at `at`. `end` is after the spaces that follow it.
 * @throws {SyntaxError} says what is wrong, and where
 */
export function readExpression(text: string, at: number): { readonly expression: Expression; readonly end: number } {
  const reader = new Reader(text, at)
  return { expression: reader.expression(), end: reader.at }
}

/**
 * Returns the value of an expression, or null when there is none.
 * @throws {KisError} a function got a value of the wrong type, or too much
 * @throws {RestsOnSkipped} the expression depends on a skipped node and has no alternative
 */
export function evaluate({ operands, calls }: Expression, scope: Scope, budget = new RenderBudget()): unknown {
  let value: unknown = null
  let isSkipped = false
  for (const operand of operands) {
    if ('path' in operand && isOfSkipped(operand.path, scope)) isSkipped = true
    else value = 'path' in operand ? valueAt(operand.path, scope, budget) : operand.literal
    if (value !== null && value !== undefined) break
  }
  if ((value ?? null) === null && isSkipped) throw new RestsOnSkipped()
  return calls.reduce<unknown>((current, call) => apply(current, call, budget), value ?? null)
}

/** Converts a value to a part of a text: a text is unchanged, null becomes nothing, any other value becomes JSON. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

class Reader {
  readonly #text: string
  at: number

  constructor(text: string, at: number) {
    this.#text = text
    this.at = at
  }

  expression(): Expression {
    const operands = [this.#operand()]
    while (this.#accepts('??')) operands.push(this.#operand())
    const calls: Call[] = []
    while (this.#accepts('|')) calls.push(this.#call())
    if (operands.length > MAX_OPERANDS || calls.length > MAX_CALLS)
      this.fail(`more than ${MAX_OPERANDS} alternatives or ${MAX_CALLS} functions`)
    return { operands, calls }
  }

  fail(what: string): never {
    throw new SyntaxError(`${what} at character ${this.at + 1} of \`${this.#text.slice(0, 100)}\``)
  }

  #operand(): Expression['operands'][number] {
    this.#match(SPACE)
    const string = this.#match(STRING)
    if (string) return { literal: this.#spaced(textIn(string[0])) }
    const number = this.#match(NUMBER)
    if (number) return { literal: this.#spaced(Number(number[0])) }
    const name = this.#match(NAME)?.[0]
    if (name === undefined) this.fail('a path, a text or a number is missing')
    if (name === 'true' || name === 'false' || name === 'null') return { literal: this.#spaced(JSON.parse(name) as boolean | null) }
    if (!ROOTS.includes(name as Root)) this.fail(`\`${name}\` is not one of ${ROOTS.join(', ')}`)
    return { path: { root: name as Root, steps: this.#spaced(this.#steps()) } }
  }

  #steps(): readonly (string | number)[] {
    const steps: (string | number)[] = []
    for (;;) {
      const index = this.#match(INDEX)
      const quoted = index ? null : this.#match(QUOTED_STEP)
      if (index) steps.push(index[2] ?? Number(index[1]))
      else if (quoted) steps.push(`.${textIn(quoted[1]!)}`)
      else if (this.#text[this.at] === '.') {
        this.at += 1
        steps.push(`.${this.#match(NAME)?.[0] ?? this.fail('a name is missing')}`)
      } else return steps
      if (steps.length > MAX_STEPS) this.fail(`a path of more than ${MAX_STEPS} steps`)
    }
  }

  #call(): Call {
    this.#match(SPACE)
    const name = this.#match(NAME)?.[0]
    if (name === undefined || !Object.hasOwn(FUNCTIONS, name)) this.fail(`a function is missing: ${Object.keys(FUNCTIONS).join(', ')}`)
    const wanted = FUNCTIONS[name as FunctionName]
    if (wanted === null) return this.#spaced({ name: name as FunctionName, argument: null })
    if (!this.#accepts('(')) this.fail(`\`${name}\` takes a ${wanted}: \`(\` is missing`)
    this.#match(SPACE)
    const literal = wanted === 'string' ? this.#match(STRING) : this.#match(NUMBER)
    if (!literal) this.fail(`\`${name}\` takes a ${wanted}`)
    const argument = wanted === 'string' ? textIn(literal[0]) : Number(literal[0])
    if (typeof argument === 'number' && (!Number.isInteger(argument) || argument < 0)) this.fail(`\`${name}\` takes a whole number from 0`)
    if (!this.#accepts(')')) this.fail('`)` is missing')
    return { name: name as FunctionName, argument }
  }

  #accepts(mark: string): boolean {
    this.#match(SPACE)
    if (!this.#text.startsWith(mark, this.at)) return false
    this.at += mark.length
    this.#match(SPACE)
    return true
  }

  #spaced<T>(value: T): T {
    this.#match(SPACE)
    return value
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.#text)
    if (found) this.at += found[0].length
    return found
  }
}

/** The value of a literal. A literal may contain line breaks and tabs, because few people escape them twice. */
function textIn(literal: string): string {
  return JSON.parse(literal.replaceAll(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))) as string
}

function isOfSkipped({ root, steps }: Path, { nodes }: Scope): boolean {
  return root === 'nodes' && nodes[stepName(steps[0])] === undefined
}

/** Returns the name in a step. A name in a step starts with a point, so no name equals `*`. */
export function stepName(step: string | number | undefined): string {
  return typeof step === 'string' && step.startsWith('.') ? step.slice(1) : ''
}

function valueAt({ root, steps }: Path, scope: Scope, budget: RenderBudget): unknown {
  const values = { left: MAX_VALUES }
  const value = walk(scope[root], steps, values)
  budget.spend(MAX_VALUES - values.left)
  return value
}

function walk(value: unknown, steps: readonly (string | number)[], values: { left: number }): unknown {
  let current = value
  for (const [i, step] of steps.entries()) {
    if (step === '*') {
      if (!Array.isArray(current)) return null
      values.left -= current.length
      if (values.left < 0) throw new KisError('run_limit_exceeded', `A path returns more than ${MAX_VALUES} values.`)
      const rest = steps.slice(i + 1)
      const found = current.map((item) => walk(item, rest, values) ?? null)
      // A second `[*]` makes a list of lists, which becomes one list.
      return rest.includes('*') ? found.flat() : found
    }
    if (typeof current !== 'object' || current === null) return null
    const key = typeof step === 'number' ? step : stepName(step)
    if (Array.isArray(current) !== (typeof step === 'number')) return null
    if (!Object.hasOwn(current, key)) return null
    current = (current as Record<string | number, unknown>)[key]
  }
  return current
}

function apply(value: unknown, { name, argument }: Call, budget: RenderBudget): unknown {
  const text = () => {
    const read = toText(value)
    budget.spend(read.length)
    return read
  }
  switch (name) {
    case 'json':
      budget.spendJson(value)
      return limited(JSON.stringify(value))
    case 'length':
      if (typeof value === 'string' || Array.isArray(value)) return value.length
      if (value === null) return 0
      return typeof value === 'object' ? countMembers(value, budget) : wrong(name, 'a text or a list')
    case 'first':
      return requireList(name, value)[0] ?? null
    case 'last':
      return requireList(name, value).at(-1) ?? null
    case 'take':
      return firstItems(requireList(name, value), argument as number, budget)
    case 'join':
      return joined(requireList(name, value), argument as string, budget)
    case 'lower':
      return text().toLowerCase()
    case 'upper':
      return limited(text().toUpperCase())
    case 'trim':
      return text().trim()
    case 'truncate':
      return truncated(text(), argument as number)
  }
}

function countMembers(value: object, budget: RenderBudget): number {
  const { length } = Object.keys(value)
  budget.spend(length)
  return length
}

function firstItems(list: readonly unknown[], count: number, budget: RenderBudget): readonly unknown[] {
  const items = list.slice(0, count)
  budget.spend(items.length)
  return items
}

/** Counts the characters while joining, because a long separator is repeated. */
function joined(list: readonly unknown[], separator: string, budget: RenderBudget): string {
  let length = 0
  const texts = list.map((item, i) => {
    const text = toText(item)
    const added = text.length + (i > 0 ? separator.length : 0)
    budget.spend(added)
    length += added
    if (length > MAX_TEXT_CHARACTERS) throw tooLong()
    return text
  })
  return texts.join(separator)
}

/** Cuts a text, but never within a surrogate pair. */
function truncated(text: string, length: number): string {
  const code = text.charCodeAt(length - 1)
  return text.slice(0, length > 0 && code >= 0xd800 && code < 0xdc00 ? length - 1 : length)
}

function requireList(name: string, value: unknown): readonly unknown[] {
  if (value === null) return []
  return Array.isArray(value) ? value : wrong(name, 'a list')
}

function limited(text: string): string {
  if (text.length > MAX_TEXT_CHARACTERS) throw tooLong()
  return text
}

/** Returns the error for a value of a workflow that has become too long. */
export function tooLong(): KisError {
  return new KisError('run_limit_exceeded', `A text has more than ${MAX_TEXT_CHARACTERS} characters.`)
}

function wrong(name: string, wanted: string): never {
  throw new KisError('invalid_request', `The function \`${name}\` takes ${wanted}.`)
}
