import { isObject, type JsonObject } from '../../../data/is-object.ts'
import { toLatinDigits } from '../../../parts/typed-number.ts'
import { writeJson } from './definition.ts'
import { findProblems, type Problem } from './problems.ts'
import { parseSource } from './source.ts'

/** An input of a run as a form asks for it. `lines`: a list of texts, one a line. `json`: anything else. */
export interface InputField {
  readonly name: string
  readonly kind: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'lines' | 'json'
  readonly title: string
  readonly description: string | null
  readonly isRequired: boolean
  /** Of a choice: the values in the schema. */
  readonly choices: readonly unknown[]
  readonly start: string
}

/** What stands in the form, by the name of the input. */
export type InputDraft = Readonly<Record<string, string>>

export type FieldProblem = 'missing' | 'number' | 'json' | Problem

/** The name of the one field of a workflow whose inputs may be any object. */
export const WHOLE = ''

function isSimple(schema: unknown): schema is JsonObject {
  return isObject(schema) && isObject(schema.properties) && Object.keys(schema.properties).length > 0
}

/** The fields for a schema of inputs; one field of JSON if the schema does not list them. */
export function fieldsOf(schema: unknown, from: unknown = undefined): readonly InputField[] {
  const provided = isObject(from) ? from : undefined
  if (!isSimple(schema)) {
    const start = writeJson(provided ?? {})
    return [{ name: WHOLE, kind: 'json', title: '', description: null, isRequired: true, choices: [], start }]
  }
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(schema.properties as JsonObject).map(([name, property]) => {
    const { title, description, enum: choices, default: fallback } = isObject(property) ? property : {}
    const kind = kindOf(property)
    const value = provided && Object.hasOwn(provided, name) ? provided[name] : fallback
    return {
      name,
      kind,
      title: typeof title === 'string' && title.trim() !== '' ? title : name,
      description: typeof description === 'string' && description.trim() !== '' ? description : null,
      isRequired: required.includes(name),
      choices: Array.isArray(choices) ? choices : [],
      start: startOf(kind, value, Array.isArray(choices) ? choices : []),
    }
  })
}

function kindOf(property: unknown): InputField['kind'] {
  if (!isObject(property)) return 'json'
  const { type, enum: choices, items } = property
  if (Array.isArray(choices)) return 'choice'
  if (type === 'string') return 'text'
  if (type === 'number' || type === 'integer' || type === 'boolean') return type
  if (type === 'array' && isObject(items) && items.type === 'string' && !items.enum) return 'lines'
  return 'json'
}

function startOf(kind: InputField['kind'], value: unknown, choices: readonly unknown[]): string {
  if (value === undefined) return ''
  if (kind === 'choice') {
    const index = choices.findIndex((choice) => writeJson(choice) === writeJson(value))
    return index < 0 ? '' : String(index)
  }
  if (kind === 'json') return writeJson(value)
  if (kind === 'lines') return Array.isArray(value) ? value.map(String).join('\n') : ''
  return String(value)
}

const NOTHING = Symbol('nothing')

function read({ kind, choices }: InputField, typed: string): unknown {
  if (kind === 'boolean') return typed === 'true'
  if (typed.trim() === '') return NOTHING
  switch (kind) {
    case 'text':
      return typed
    case 'choice':
      return choices[Number(typed)]
    case 'lines':
      return typed.split('\n').filter((line) => line.trim() !== '')
    case 'number':
    case 'integer': {
      const number = toLatinDigits(typed)
      if (!/^-?\d+(\.\d+)?$/.test(number) || (kind === 'integer' && !/^-?\d+$/.test(number))) throw 'number'
      return Number(number)
    }
    case 'json': {
      const parsed = parseSource(typed)
      if ('error' in parsed) throw 'json'
      return parsed.value
    }
  }
}

/** The inputs that a form says, and what is wrong with them by the name of the field. */
export function readInputs(
  schema: unknown,
  fields: readonly InputField[],
  draft: InputDraft,
): { readonly inputs: JsonObject; readonly problems: ReadonlyMap<string, FieldProblem> } {
  const problems = new Map<string, FieldProblem>()
  const entries: [string, unknown][] = []
  let whole: unknown = {}
  for (const field of fields) {
    try {
      const value = read(field, draft[field.name] ?? field.start)
      if (field.name === WHOLE) whole = value
      else if (value !== NOTHING) entries.push([field.name, value])
      else if (field.isRequired) problems.set(field.name, 'missing')
    } catch (problem) {
      problems.set(field.name, problem as FieldProblem)
    }
  }
  if (fields[0]?.name === WHOLE) {
    if (!isObject(whole) && problems.size === 0) problems.set(WHOLE, 'json')
    const inputs = isObject(whole) ? whole : {}
    if (problems.size === 0 && isObject(schema)) for (const problem of findProblems(schema, inputs)) problems.set(WHOLE, problem)
    return { inputs, problems }
  }
  const inputs = Object.fromEntries(entries)
  if (isObject(schema)) {
    for (const problem of findProblems(schema, inputs)) {
      const name = problem.path.length === 0 && problem.keyword === 'required' ? problem.wanted : String(problem.path[0] ?? '')
      if (fields.some((field) => field.name === name) && !problems.has(name)) problems.set(name, problem)
    }
  }
  return { inputs, problems }
}
