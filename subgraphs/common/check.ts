import type { ErrorCode } from '../../schema/errors.ts'
import { KisError } from './errors.ts'

/** Throws the error that refuses a request. `param` is the path of the wrong value. */
export function refuse(code: ErrorCode, param: string, message: string): never {
  throw new KisError(code, message, { param })
}

/** Absent and null mean the same throughout the protocol. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

/**
 * Returns an object.
 * @throws {KisError} the value is absent or no object
 */
export function objectAt(value: unknown, param: string): Readonly<Record<string, unknown>> {
  if (isAbsent(value)) return refuse('missing_required_parameter', param, `Missing required parameter: '${param}'.`)
  if (typeof value !== 'object' || Array.isArray(value)) return refuse('invalid_type', param, `'${param}' must be an object.`)
  return value as Readonly<Record<string, unknown>>
}

/**
 * Returns a text.
 * @throws {KisError} the value is absent or no text
 */
export function textAt(value: unknown, param: string): string {
  if (isAbsent(value)) return refuse('missing_required_parameter', param, `Missing required parameter: '${param}'.`)
  if (typeof value !== 'string') return refuse('invalid_type', param, `'${param}' must be a string.`)
  return value
}

/** Limit of nesting levels. No real data is nested deeper, and reading it recursively would exhaust the stack. */
export const MAX_DEPTH = 64

/**
 * @throws {KisError} `invalid_request`: the JSON value is nested deeper than 64 levels, or has a field that sets a
 * prototype
 */
export function checkJson(value: unknown, param: string, depth = 0): void {
  if (depth > MAX_DEPTH) refuse('invalid_request', param, `'${param}' is nested deeper than ${MAX_DEPTH} levels.`)
  if (typeof value !== 'object' || value === null) return
  // JSON parsers between processes refuse both names.
  for (const name of ['__proto__', 'constructor'])
    if (Object.hasOwn(value, name) && (name === '__proto__' || hasPrototype((value as Record<string, unknown>)[name])))
      refuse('invalid_request', param, `'${param}' has a field \`${name}\` that would change a prototype. Rename it.`)
  for (const each of Array.isArray(value) ? value : Object.values(value))
    if (typeof each === 'object' && each !== null) checkJson(each, param, depth + 1)
}

const hasPrototype = (value: unknown) => typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype')

/** @param least 0 or 1 */
export function listAt(value: unknown, param: string, least: number, most: number): readonly unknown[] {
  if (isAbsent(value)) return refuse('missing_required_parameter', param, `Missing required parameter: '${param}'.`)
  if (!Array.isArray(value)) return refuse('invalid_type', param, `'${param}' must be an array.`)
  if (value.length < least) return refuse('invalid_request', param, `'${param}' must not be empty.`)
  if (value.length > most)
    return refuse('array_above_max_length', param, `'${param}' must have at most ${most} items; it has ${value.length}.`)
  return value
}

/**
 * Checks an integer, which may be absent.
 * @throws {KisError} the value is no integer, or out of range
 */
export function checkInteger(value: unknown, param: string, least: number, most: number): void {
  if (isAbsent(value)) return
  if (!Number.isInteger(value)) refuse('invalid_type', param, `'${param}' must be an integer.`)
  if ((value as number) < least) refuse('integer_below_min_value', param, `'${param}' must be at least ${least}; it is ${value}.`)
  if ((value as number) > most) refuse('integer_above_max_value', param, `'${param}' must be at most ${most}; it is ${value}.`)
}

/**
 * Checks a number, which may be absent.
 * @throws {KisError} the value is no number, or out of range
 */
export function checkNumber(value: unknown, param: string, least: number, most: number): void {
  if (isAbsent(value)) return
  if (typeof value !== 'number' || Number.isNaN(value)) refuse('invalid_type', param, `'${param}' must be a number.`)
  if (value < least || value > most) refuse('invalid_request', param, `'${param}' must be from ${least} to ${most}; it is ${value}.`)
}

export function checkBoolean(value: unknown, param: string): void {
  if (!isAbsent(value) && typeof value !== 'boolean') refuse('invalid_type', param, `'${param}' must be a boolean.`)
}

export function checkLength(text: string, param: string, most: number): void {
  if (text.length > most)
    refuse('string_above_max_length', param, `'${param}' must have at most ${most} characters; it has ${text.length}.`)
}

export function checkOneOf(value: unknown, param: string, values: readonly string[]): void {
  if (!values.includes(value as string)) {
    refuse(
      'unsupported_value',
      param,
      `Unsupported value for '${param}': it must be one of ${values.map((each) => `'${each}'`).join(', ')}.`,
    )
  }
}

/** Names of functions and schemas. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * Checks the name of a function or schema.
 * @throws {KisError} the value is no such name
 */
export function checkName(value: unknown, param: string): void {
  if (!NAME.test(textAt(value, param))) refuse('invalid_request', param, `'${param}' must be 1 to 64 letters, digits, '_' or '-'.`)
}

/** The greatest number of GraphQL's 32-bit `Int`. */
export const MAX_INT = 2 ** 31 - 1

/** Returns the number, or the greatest `Int` in place of a greater one. */
export function toInt(value: number): number {
  return Math.min(value, MAX_INT)
}
