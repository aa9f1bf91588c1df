import { describe, expect, it } from 'vitest'
import { checkStrictSchema } from './strict-schema.ts'

const object = (properties: Readonly<Record<string, unknown>>, rest: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...rest,
})
const text = { type: 'string' }
/** Returns a schema of `levels` nested objects. */
const nested = (levels: number): object => object(levels === 1 ? { leaf: text } : { inner: nested(levels - 1) })
const many = (count: number, value: (index: number) => unknown) => Array.from({ length: count }, (_, index) => value(index))
const properties = (count: number, name = 'p') =>
  Object.fromEntries(many(count, (index) => [`${name}${index}`, text] as const) as [string, unknown][])

describe('Strict schema refuses', () => {
  it.each<[string, unknown, string, string]>([
    ['a missing schema', undefined, 'missing_required_parameter', 's'],
    ['text', '{}', 'invalid_type', 's'],
    ['a root that is a list', { type: 'array', items: text }, 'unsupported_value', 's.type'],
    ['a root that is one of several', { type: 'object', anyOf: [object({})] }, 'unsupported_value', 's.anyOf'],
    ['an optional property', object({ a: text, b: text }, { required: ['a'] }), 'invalid_request', 's.required'],
    ['a required property that is not defined', object({ a: text }, { required: ['a', 'b'] }), 'invalid_request', 's.required'],
    ['requirements as text', object({ a: text }, { required: 'a' }), 'invalid_type', 's.required'],
    ['additional properties', object({ a: text }, { additionalProperties: true }), 'invalid_request', 's.additionalProperties'],
    ['a missing additionalProperties', { type: 'object', properties: {} }, 'invalid_request', 's.additionalProperties'],
    ['an open nested object', object({ a: { type: 'object', properties: {} } }), 'invalid_request', 's.properties.a.additionalProperties'],
    [
      'an open object that may be null',
      object({ a: { type: ['object', 'null'] } }),
      'invalid_request',
      's.properties.a.additionalProperties',
    ],
    [
      'an open object in a list',
      object({ a: { type: 'array', items: { type: 'object' } } }),
      'invalid_request',
      's.properties.a.items.additionalProperties',
    ],
    [
      'an open object among several',
      object({ a: { anyOf: [text, { type: 'object' }] } }),
      'invalid_request',
      's.properties.a.anyOf[1].additionalProperties',
    ],
    ['an open definition', object({}, { $defs: { step: { type: 'object' } } }), 'invalid_request', 's.$defs.step.additionalProperties'],
    ['a property that is no schema', object({ a: true }), 'invalid_type', 's.properties.a'],
    ['properties in a list', { ...object({}), properties: [] }, 'invalid_type', 's.properties'],
    ['allOf', object({ a: { allOf: [text] } }), 'unsupported_value', 's.properties.a.allOf'],
    ['conditions', object({}, { if: {}, else: {} }), 'unsupported_value', 's.if'],
    ['names by pattern', object({}, { patternProperties: {} }), 'unsupported_value', 's.patternProperties'],
    ['a reference to elsewhere', object({ a: { $ref: 'https://example.com/a.json' } }), 'unsupported_value', 's.properties.a.$ref'],
    ['an empty enum', object({ a: { enum: [] } }), 'invalid_type', 's.properties.a.enum'],
    ['an empty anyOf', object({ a: { anyOf: [] } }), 'invalid_type', 's.properties.a.anyOf'],
    ['11 nested objects', nested(11), 'unsupported_value', `s${'.properties.inner'.repeat(10)}`],
    ['5,001 properties', object(properties(5_001)), 'array_above_max_length', 's'],
    ['1,001 enum values', object({ a: { enum: many(1_001, (index) => index) } }), 'array_above_max_length', 's.properties.a.enum'],
    [
      'an enum of 251 long texts',
      object({ a: { enum: many(251, (index) => `${index}`.padEnd(60)) } }),
      'string_above_max_length',
      's.properties.a.enum',
    ],
    ['names that are too long in total', object(properties(2_000, 'p'.repeat(60))), 'string_above_max_length', 's'],
  ])('%s', (_name, schema, code, param) => {
    expect(() => checkStrictSchema(schema, 's')).toThrow(expect.objectContaining({ code, param }))
  })

  it('endlessly nested lists, before the stack overflows', () => {
    let items: object = text
    for (let depth = 0; depth < 50_000; depth += 1) items = { type: 'array', items }
    expect(() => checkStrictSchema(object({ a: items }), 's')).toThrow(expect.objectContaining({ code: 'unsupported_value' }))
  })

  it('an overlong name, with its beginning in the path', () => {
    expect(() => checkStrictSchema(object({ ['n'.repeat(1_000)]: true }), 's')).toThrow(
      expect.objectContaining({ param: `s.properties.${'n'.repeat(64)}…` }),
    )
  })
})

describe('Strict schema accepts', () => {
  it.each<[string, object]>([
    ['no properties', { type: 'object', additionalProperties: false }],
    ['10 nested objects', nested(10)],
    ['nullable types', object({ a: { type: ['string', 'null'] }, b: { anyOf: [object({ c: text }), { type: 'null' }] } })],
    [
      'limits of numbers, texts and lists',
      object({ a: { type: 'number', minimum: 0 }, b: { type: 'string', pattern: '^a' }, c: { type: 'array', items: text, minItems: 1 } }),
    ],
    [
      'a recursive schema',
      object(
        { children: { type: 'array', items: { $ref: '#' } }, next: { $ref: '#/$defs/next' } },
        { $defs: { next: object({ v: text }) } },
      ),
    ],
    ['5,000 properties and 1,000 values', object({ ...properties(4_999), a: { enum: many(1_000, (index) => index) } })],
    ['a property named like a keyword', object({ allOf: text, properties: text, required: text })],
  ])('%s', (_name, schema) => {
    expect(() => checkStrictSchema(schema, 's')).not.toThrow()
  })
})
