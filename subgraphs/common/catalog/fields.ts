import { z } from 'zod'
import { parseUsd } from '../usd.ts'

// The field types of the catalog. Each message continues the path of its field. A field that is null counts as absent.

/** Uses `message` for a wrong value and `is missing` for an absent one. */
function orMissing(message: string) {
  return { error: ({ input }: { readonly input?: unknown }) => ((input ?? null) === null ? 'is missing' : message) }
}

/** A mapping with exactly these fields. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? undefined : 'must be a mapping') })
}

/** A field that may be absent; it is then null. */
export function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? null)
}

/** Text that is required and not empty. */
export function requiredText() {
  return z.string(orMissing('must be text')).refine((value) => value !== '', 'is missing')
}

export function text() {
  return z.string('must be text')
}

export function oneOf<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, orMissing(`must be one of ${values.join(', ')}`))
}

/** A list that may be absent; it is then empty. */
export function list<Schema extends z.ZodType>(schema: Schema) {
  return z
    .array(schema, 'must be a list')
    .nullish()
    .transform((items): readonly z.output<Schema>[] => items ?? [])
}

/** Reports each problem for the whole list, naming the entry by its text. */
export function choices<const Value extends string>(values: readonly Value[]) {
  return list(z.custom<Value>()).superRefine((items, context) => {
    for (const item of items) if (!values.includes(item)) context.addIssue(`has \`${item}\`, which is not one of ${values.join(', ')}`)
  })
}

/** A list of texts. Absent: an empty list. */
export function names() {
  return list(z.custom<string>()).superRefine((items, context) => {
    for (const item of items) if (typeof item !== 'string') context.addIssue('must hold text')
  })
}

export function flag() {
  return z.boolean('must be true or false')
}

/** A whole number within limits. */
export function whole(least: number, most: number) {
  const message = `must be a whole number from ${least} to ${most}`
  return z.number(message).refine((number) => Number.isSafeInteger(number) && number >= least && number <= most, message)
}

export function aboveZero() {
  return z.number('must be a number above zero').positive('must be a number above zero')
}

/** A price, read as nano-USD. It must be quoted, because YAML would read 0.15 as a binary fraction. */
export function usd() {
  return optional(readBy(parseAmount, 'must be a price in USD as a quoted decimal, such as "0.15", with at most 9 places'))
}

export function date() {
  return optional(readBy(parseDate, 'must be a date, such as 2026-01-31'))
}

/** `read` returns undefined for a value that it cannot read. */
function readBy<T>(read: (value: unknown) => T | undefined, message: string) {
  return z.unknown().transform((value, context): T => {
    const result = read(value)
    if (result !== undefined) return result
    context.addIssue(message)
    return z.NEVER
  })
}

function parseAmount(value: unknown): bigint | undefined {
  try {
    const amount = parseUsd(value)
    return amount >= 0n ? amount : undefined
  } catch {
    return undefined
  }
}

function parseDate(value: unknown): Date | undefined {
  const date = new Date(String(value))
  return Number.isNaN(date.getTime()) ? undefined : date
}

/**
 * Runs a rule over several fields of a mapping once these fields are valid by themselves. Errors of other fields do not
 * prevent the rule.
 */
export function reading(...fields: readonly PropertyKey[]) {
  return {
    when: ({ issues }: z.core.ParsePayload) =>
      issues.every(({ code, path = [] }) => (path.length === 0 ? code === 'unrecognized_keys' : !fields.includes(path[0]!))),
  }
}
