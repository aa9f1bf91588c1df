import {
  type Expression,
  evaluate,
  MAX_TEXT_CHARACTERS,
  parseExpression,
  readExpression,
  type Scope,
  tooLong,
  toText,
} from './expression.ts'
import { RenderBudget } from './render-budget.ts'

/** How deep a value may be nested. */
const MAX_DEPTH = 16

/**
 * Renders a text with `{{ expression }}`s.
 * @throws {SyntaxError} the template is malformed
 * @throws {KisError} `run_limit_exceeded`: the result is too long
 * @throws as `evaluate`
 */
export function renderText(template: string, scope: Scope, budget = new RenderBudget()): string {
  let text = ''
  for (const part of splitTemplate(template)) {
    const added = typeof part === 'string' ? part : toText(evaluate(part, scope, budget))
    budget.spend(added.length)
    text += added
    if (text.length > MAX_TEXT_CHARACTERS) throw tooLong()
  }
  return text
}

/**
 * Renders a JSON value. Its texts are templates, and `{"$ref": "expression"}` stands for the expression's value.
 * @throws as `renderText`
 */
export function renderValue(template: unknown, scope: Scope, budget = new RenderBudget()): unknown {
  if (typeof template === 'string') return renderText(template, scope, budget)
  const reference = readReference(template)
  if (reference !== null) return evaluate(parseExpression(reference), scope, budget)
  if (Array.isArray(template)) return template.map((item) => renderValue(item, scope, budget))
  if (typeof template !== 'object' || template === null) return template
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, renderValue(value, scope, budget)]))
}

/** An expression of a template, and its path. */
export interface Placed {
  readonly expression: Expression
  readonly path: string
}

/**
 * Gives every expression of a text or value.
 * @throws {Misplaced} a template is malformed
 */
export function* findExpressions(template: unknown, path: string, depth = 0): Generator<Placed> {
  if (depth > MAX_DEPTH) throw new Misplaced(path, `It is nested deeper than ${MAX_DEPTH} levels.`)
  const reference = readReference(template)
  try {
    if (reference !== null) yield { expression: parseExpression(reference), path }
    else if (typeof template === 'string')
      for (const part of splitTemplate(template)) if (typeof part !== 'string') yield { expression: part, path }
  } catch (error) {
    if (error instanceof SyntaxError) throw new Misplaced(path, `This is not an expression: ${error.message}.`)
    throw error
  }
  if (reference !== null || typeof template !== 'object' || template === null) return
  for (const [name, value] of Object.entries(template))
    yield* findExpressions(value, Array.isArray(template) ? `${path}[${name}]` : `${path}.${name}`, depth + 1)
}

/** A fault in a definition, with its path. */
export class Misplaced extends Error {
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

function readReference(template: unknown): string | null {
  if (typeof template !== 'object' || template === null || Array.isArray(template)) return null
  const { $ref, ...rest } = template as { readonly $ref?: unknown }
  return typeof $ref === 'string' && Object.keys(rest).length === 0 ? $ref : null
}

function* splitTemplate(template: string): Generator<string | Expression> {
  let at = 0
  for (;;) {
    const open = template.indexOf('{{', at)
    if (open < 0) return yield template.slice(at)
    if (open > at) yield template.slice(at, open)
    const { expression, end } = readExpression(template, open + 2)
    if (!template.startsWith('}}', end)) throw new SyntaxError(`\`}}\` is missing at character ${end + 1} of \`${template.slice(0, 100)}\``)
    yield expression
    at = end + 2
  }
}
