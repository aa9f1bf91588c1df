import { KisError } from '../../../common/errors.ts'
import type { FilterValue, SearchFilter } from './search-filter.ts'

/** Maximum depth of and, or, not and conditions. */
const MAX_DEPTH = 5
/**
 * Maximum conditions of a filter, where each value of an `in` counts. They become one SQL statement or one
 * Elasticsearch query.
 */
const MAX_CONDITIONS = 50
/** Maximum `contains` conditions among them. In Elasticsearch, each scans all organizations' values of its field. */
const MAX_CONTAINS = 5
/** Maximum UTF-16 units of a string value. */
const MAX_VALUE_LENGTH = 1_024
/** Maximum UTF-16 units of the text in a `contains`. */
const MAX_CONTAINED_LENGTH = 100
const METADATA_FIELD = /^metadata\.[\p{L}\p{M}\p{N}_.-]{1,64}$/u

const COMPARISONS = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte'] as const
type Comparison = (typeof COMPARISONS)[number]

/** Running totals of the filter. */
interface Count {
  conditions: number
  contains: number
}

type FieldKind = 'string' | 'number' | 'time' | 'any'
const FIELDS: Readonly<Record<string, FieldKind>> = {
  file_name: 'string',
  media_type: 'string',
  language: 'string',
  document_id: 'string',
  created_at: 'time',
  page: 'number',
}

/**
 * Validates a filter in the client's form, `{field: value, …}` (all must match) or `{op, …}`, and converts it to the
 * index's form. Returns null for no filter. `created_at` is an ISO 8601 time or Unix seconds, and milliseconds in the
 * result.
 * @throws {KisError} `invalid_request`: the filter is invalid; names the path, such as `filter.filters[1].op`
 */
export function parseSearchFilter(json: unknown): SearchFilter | null {
  if (json === null || json === undefined) return null
  const count = { conditions: 0, contains: 0 }
  return parse(json, 'filter', 1, count)
}

function parse(json: unknown, at: string, depth: number, count: Count): SearchFilter {
  if (depth > MAX_DEPTH) throw new KisError('operation_too_complex', `A filter has at most ${MAX_DEPTH} levels.`, { param: at })
  const filter = requireObject(json, at)
  const { op } = filter
  if (op === undefined) return parseShorthand(filter, at, count)
  if (typeof op !== 'string') throw new KisError('invalid_type', '`op` is a string.', { param: `${at}.op` })

  if (op === 'and' || op === 'or') {
    onlyKeys(filter, ['op', 'filters'], at)
    const filters = requireList(filter.filters, `${at}.filters`)
    return { op, filters: filters.map((child, i) => parse(child, `${at}.filters[${i}]`, depth + 1, count)) }
  }
  if (op === 'not') {
    onlyKeys(filter, ['op', 'filter', 'filters'], at)
    return { op, filter: parseNegated(filter, at, depth, count) }
  }
  if (op === 'in') {
    onlyKeys(filter, ['op', 'field', 'value'], at)
    const field = readField(filter.field, `${at}.field`)
    const values = requireList(filter.value, `${at}.value`)
    addConditions(values.length, at, count)
    return { op, field, values: values.map((value, i) => filterValue(field, value, `${at}.value[${i}]`)) }
  }
  if (isComparison(op)) {
    onlyKeys(filter, ['op', 'field', 'value'], at)
    const field = readField(filter.field, `${at}.field`)
    addConditions(1, at, count)
    return { op, field, value: comparedValue(op, field, filter.value, `${at}.value`) }
  }
  if (op === 'contains') {
    onlyKeys(filter, ['op', 'field', 'value'], at)
    const field = readField(filter.field, `${at}.field`)
    addConditions(1, at, count)
    count.contains += 1
    if (count.contains > MAX_CONTAINS)
      throw new KisError('operation_too_complex', `A filter has at most ${MAX_CONTAINS} conditions with \`contains\`.`, { param: at })
    return { op, field, value: containedText(field, filter.value, `${at}.value`) }
  }
  throw new KisError('unsupported_value', `\`op\` is one of ${[...COMPARISONS, 'contains', 'in', 'and', 'or', 'not'].join(', ')}.`, {
    param: `${at}.op`,
  })
}

function parseShorthand(filter: Readonly<Record<string, unknown>>, at: string, count: Count): SearchFilter {
  const entries = Object.entries(filter)
  if (entries.length === 0) throw new KisError('invalid_request', 'The filter is empty; leave it out to search everything.', { param: at })
  addConditions(entries.length, at, count)
  const filters = entries.map(([name, value]) => {
    const field = readField(name, `${at}.${name}`)
    return { op: 'eq', field, value: filterValue(field, value, `${at}.${name}`) } as const
  })
  return filters.length === 1 ? filters[0]! : { op: 'and', filters }
}

function parseNegated(filter: Readonly<Record<string, unknown>>, at: string, depth: number, count: Count): SearchFilter {
  if (filter.filters === undefined) return parse(filter.filter, `${at}.filter`, depth + 1, count)
  if (filter.filter !== undefined) throw new KisError('invalid_request', '`not` takes `filter` or `filters`, not both.', { param: at })
  const filters = requireList(filter.filters, `${at}.filters`)
  if (filters.length !== 1) throw new KisError('invalid_request', '`not` takes exactly one filter.', { param: `${at}.filters` })
  return parse(filters[0], `${at}.filters[0]`, depth + 1, count)
}

function addConditions(added: number, at: string, count: Count): void {
  count.conditions += added
  if (count.conditions <= MAX_CONDITIONS) return
  throw new KisError('operation_too_complex', `A filter has at most ${MAX_CONDITIONS} conditions, each value of an \`in\` counted.`, {
    param: at,
  })
}

function readField(name: unknown, at: string): string {
  if (name === undefined) throw new KisError('missing_required_parameter', '`field` is missing.', { param: at })
  if (typeof name !== 'string') throw new KisError('invalid_type', '`field` is a string.', { param: at })
  if (Object.hasOwn(FIELDS, name) || METADATA_FIELD.test(name)) return name
  throw new KisError('unsupported_value', `A filter's field is one of ${Object.keys(FIELDS).join(', ')} and metadata.<name>.`, {
    param: at,
  })
}

function comparedValue(op: Comparison, field: string, value: unknown, at: string): FilterValue {
  const parsed = filterValue(field, value, at)
  if (typeof parsed === 'boolean' && op !== 'eq' && op !== 'ne') {
    throw new KisError('invalid_type', `\`${op}\` compares strings or numbers.`, { param: at })
  }
  return parsed
}

function containedText(field: string, value: unknown, at: string): string {
  const kind = FIELDS[field] ?? 'any'
  if (kind === 'number' || kind === 'time' || field === 'document_id')
    throw new KisError('unsupported_value', `\`contains\` is for texts, and \`${field}\` is not a text.`, { param: at })
  const text = filterValue(field, value, at)
  if (typeof text !== 'string' || text === '')
    throw new KisError('invalid_type', '`contains` takes a text that is not empty.', { param: at })
  if (text.length > MAX_CONTAINED_LENGTH)
    throw new KisError('string_above_max_length', `\`contains\` takes at most ${MAX_CONTAINED_LENGTH} characters.`, { param: at })
  return text
}

/** Whether the name is a metadata field of documents. */
export function isMetadataField(name: string): boolean {
  return METADATA_FIELD.test(name)
}

function filterValue(field: string, value: unknown, at: string): FilterValue {
  const kind = FIELDS[field] ?? 'any'
  if (value === undefined) throw new KisError('missing_required_parameter', '`value` is missing.', { param: at })
  if (kind === 'time') return readMilliseconds(value, at)
  const fits =
    (typeof value === 'string' && kind !== 'number') ||
    (typeof value === 'number' && Number.isFinite(value) && kind !== 'string') ||
    (typeof value === 'boolean' && kind === 'any')
  if (!fits)
    throw new KisError('invalid_type', `A value of \`${field}\` is a ${kind === 'any' ? 'string, number or boolean' : kind}.`, {
      param: at,
    })
  if (typeof value === 'string' && value.length > MAX_VALUE_LENGTH) {
    throw new KisError('string_above_max_length', `A value has at most ${MAX_VALUE_LENGTH} characters.`, { param: at })
  }
  return value
}

function readMilliseconds(value: unknown, at: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value * 1000
  // Date.parse accepts more than ISO 8601 ("1", in some engines "next May"), so check the form first.
  const time = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(value) ? Date.parse(value) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new KisError('invalid_type', '`created_at` is an ISO 8601 time such as 2026-01-31T12:00:00Z, or Unix seconds.', { param: at })
}

function requireObject(json: unknown, at: string): Readonly<Record<string, unknown>> {
  if (json === undefined) throw new KisError('missing_required_parameter', 'A filter is missing here.', { param: at })
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Record<string, unknown>
  throw new KisError('invalid_type', 'A filter is an object.', { param: at })
}

function requireList(json: unknown, at: string): readonly unknown[] {
  if (json === undefined) throw new KisError('missing_required_parameter', 'A list is missing here.', { param: at })
  if (!Array.isArray(json)) throw new KisError('invalid_type', 'This is a list.', { param: at })
  if (json.length === 0) throw new KisError('invalid_request', 'This list is empty.', { param: at })
  if (json.length > MAX_CONDITIONS)
    throw new KisError('array_above_max_length', `This list has at most ${MAX_CONDITIONS} items.`, { param: at })
  return json
}

function onlyKeys(filter: Readonly<Record<string, unknown>>, allowed: readonly string[], at: string): void {
  const stray = Object.keys(filter).find((key) => !allowed.includes(key))
  if (stray !== undefined)
    throw new KisError('invalid_request', `\`${stray}\` does not belong to this filter.`, { param: `${at}.${stray}` })
}

function isComparison(op: string): op is Comparison {
  return (COMPARISONS as readonly string[]).includes(op)
}
