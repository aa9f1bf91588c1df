import { readFileSync } from 'node:fs'
import { type Document, LineCounter, parseDocument, visit } from 'yaml'
import { z } from 'zod'
import { list, mapping } from '../../../common/catalog/fields.ts'
import { type CatalogPlan, PLAN, SELF_HOSTED, toPlan } from '../../../common/catalog/plan.ts'
import { ConfigError } from '../../../common/errors.ts'
import { ENGINE, type EngineEntry, toEngineEntry } from './engine.ts'
import { MODEL, type ModelEntry, toModelEntry } from './model.ts'
import { checkReferences, REFERENCES } from './references.ts'

export interface CatalogFile {
  readonly engines: readonly EngineEntry[]
  readonly models: readonly ModelEntry[]
  /** The plans of the file, and the built-in `self-hosted` unless the file defines a plan with that name. */
  readonly plans: readonly CatalogPlan[]
}

/** Lists every problem of the file, each with its line and path. */
export class CatalogError extends ConfigError {}

type Path = readonly (string | number)[]
type Environment = Readonly<Record<string, string | undefined>>

const CATALOG = mapping({
  engines: byName(ENGINE),
  models: list(MODEL),
  plans: byName(PLAN),
}).superRefine(
  ({ engines, models }, context) =>
    checkReferences(engines, models, (path, message) => context.addIssue({ code: 'custom', path, message })),
  // This check runs once references and their targets are valid by themselves, whatever is wrong with other fields.
  {
    when: ({ issues }) =>
      issues.every(({ code, path = [] }) => code === 'unrecognized_keys' || path[0] === 'plans' || isOfOtherField(path)),
  },
)

/**
 * Reads the operator's catalog of engines, models and plans.
 * @throws {CatalogError} the file has problems, or cannot be read
 */
export function readCatalogFile(path: string, env: Environment): CatalogFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new CatalogError([`${path}: cannot be read: ${(error as Error).message}`])
  }
  return parseCatalog(text, path, env)
}

/**
 * Parses a catalog. `name` starts every problem.
 * @throws {CatalogError} the text has problems
 */
export function parseCatalog(text: string, name: string, env: Environment): CatalogFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  if (document.errors.length) {
    throw new CatalogError(document.errors.map((error) => `${name}:${lines.linePos(error.pos[0]).line}: ${error.message.split('\n')[0]}`))
  }
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string') node.value = substitute(node.value, env)
    },
  })
  const { success, data, error } = CATALOG.safeParse(document.toJS() ?? {})
  if (!success) {
    const problems = error.issues.flatMap(toProblems)
    throw new CatalogError(problems.map(({ path, message }) => `${name}:${findLine(document, lines, path)}: ${pathText(path)}: ${message}`))
  }
  const plans = Object.entries(data.plans).map(([code, plan]) => toPlan(code, plan))
  return {
    engines: Object.entries(data.engines).map(([engine, fields]) => toEngineEntry(engine, fields)),
    models: data.models.map(toModelEntry),
    plans: plans.some(({ code }) => code === SELF_HOSTED.code) ? plans : [SELF_HOSTED, ...plans],
  }
}

function byName<Schema extends z.ZodType>(schema: Schema) {
  return z
    .record(z.string(), schema, 'must be a mapping')
    .nullish()
    .transform((entries): Readonly<Record<string, z.output<Schema>>> => entries ?? {})
}

function isOfOtherField(path: readonly PropertyKey[]): boolean {
  return path.length > 2 && !REFERENCES.includes(path[2]!)
}

/** Replaces `${NAME}` and `${NAME:-default}`. An unset or empty variable becomes the default, or nothing. */
function substitute(text: string, env: Environment): string {
  return text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, fallback = '') => env[name] || fallback)
}

/** Zod reports all unknown fields of a mapping as one issue. Here each becomes a separate problem. */
function toProblems(issue: z.core.$ZodIssue): readonly { readonly path: Path; readonly message: string }[] {
  // YAML's keys are text, and its lists have numbers.
  const path = issue.path as Path
  if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
  return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a field that the catalog knows' }))
}

/** Returns the line of the node at the path, or of the nearest node around it. */
function findLine(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length >= 0; length--) {
    const node = length ? document.getIn(path.slice(0, length), true) : document.contents
    const start = (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0]
    if (start !== undefined) return lines.linePos(start).line
  }
  return 1
}

function pathText(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index ? `.${step}` : step)).join('') || 'the file'
}
