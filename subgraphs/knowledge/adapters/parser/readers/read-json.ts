import { ParseFailure } from '../../../ports/document-parser.ts'
import { decodeText, warnOfReplaced } from '../decode-text.ts'
import type { BlockFacts, DocumentBuilder } from './document-builder.ts'
import { LINE_ENDS, readText } from './read-text.ts'
import { type Field, toLines } from './record-lines.ts'

type Json = string | null | readonly Json[] | { readonly [name: string]: Json }

/** Maximum nesting depth. No real data is deeper. */
const MAX_DEPTH = 200

/**
 * Reads JSON and JSON Lines. Each object is a paragraph of `name: value` lines. Fields of a nested object are lines of
 * `outer.name: value`. Objects in a list are separate paragraphs. Lists and objects in the outermost object have their
 * names as headings. Numbers are unchanged.
 * @throws {ParseFailure} `limit_exceeded` if values are nested too deeply.
 */
export function readJson(bytes: Uint8Array, builder: DocumentBuilder): void {
  const decoded = decodeText(bytes)
  const whole = parse(decoded.text)
  const lines = whole === undefined ? readJsonLines(decoded.text) : undefined
  if (whole === undefined && !lines) {
    builder.warn('structure_lost', 'The file is not valid JSON, so the service read it as plain text.')
    readText(bytes, builder)
    return
  }
  warnOfReplaced(decoded, builder)
  for (const { value, number } of lines ?? [])
    addValue('', value, builder, 0, { location: { within: 'line ', start: `${number}`, end: `${number}` } })
  if (whole === undefined) return
  if (!isObject(whole)) {
    addValue('', whole, builder, 0)
    return
  }
  const entries = Object.entries(whole)
  addValue('', Object.fromEntries(entries.filter(([, value]) => !isContainer(value))), builder, 0)
  for (const [name, value] of entries) {
    if (!isContainer(value)) continue
    builder.add('heading', name, { level: 1 })
    addValue('', value, builder, 1)
  }
}

/**
 * Returns undefined if the text is not JSON.
 * @throws {ParseFailure} `limit_exceeded` if values are nested too deeply.
 */
function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text, (_name, value, context?: { source?: string }) =>
      typeof value === 'object' || typeof value === 'string' ? value : (context?.source ?? String(value)),
    ) as Json
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep()
    return undefined
  }
}

interface Line {
  readonly value: Json
  readonly number: number
}

/** Returns undefined if a line is not an object or a list, or if there are no lines. */
function readJsonLines(text: string): readonly Line[] | undefined {
  const lines: Line[] = []
  for (const [index, line] of text.split(LINE_ENDS).entries()) {
    if (line.trim() === '') continue
    const value = /^\s*[{[]/.test(line) ? parse(line) : undefined
    if (value === undefined) return undefined
    lines.push({ value, number: index + 1 })
  }
  return lines.length > 0 ? lines : undefined
}

/** Adds a paragraph for the scalar fields, followed by the items of the lists. */
function addValue(name: string, value: Json, builder: DocumentBuilder, depth: number, facts: BlockFacts = {}): void {
  if (depth > MAX_DEPTH) throw tooDeep()
  if (!isContainer(value)) {
    builder.add('paragraph', toLines([[name, value ?? '']]), facts)
    return
  }
  const fields: Field[] = []
  const later: (readonly [name: string, list: readonly Json[]])[] = []
  if (isObject(value)) collect('', value, fields, later, depth)
  else later.push([name, value])
  builder.add('paragraph', toLines(fields), facts)
  for (const [of, list] of later) {
    for (const item of list) addValue(isContainer(item) ? '' : of, item, builder, depth + 1, facts)
  }
}

function collect(
  prefix: string,
  value: { readonly [name: string]: Json },
  fields: Field[],
  later: (readonly [name: string, list: readonly Json[]])[],
  depth: number,
): void {
  if (depth > MAX_DEPTH) throw tooDeep()
  for (const [key, inner] of Object.entries(value)) {
    const name = prefix === '' ? key : `${prefix}.${key}`
    if (isObject(inner)) collect(name, inner, fields, later, depth + 1)
    else if (!isContainer(inner)) fields.push([name, inner ?? ''])
    else if (inner.some(isContainer)) later.push([name, inner])
    else fields.push([name, inner.filter((item) => item !== null).join(', ')])
  }
}

function isContainer(value: Json): value is readonly Json[] | { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return isContainer(value) && !Array.isArray(value)
}

function tooDeep(): ParseFailure {
  return new ParseFailure('limit_exceeded', `The document has values more than ${MAX_DEPTH} levels deep.`)
}
