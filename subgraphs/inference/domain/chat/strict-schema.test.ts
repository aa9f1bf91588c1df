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

describe('a strict schema is refused for', () => {
  it.each<[string, unknown, string, string]>([
    ['not being there', undefined, 'missing_required_parameter', 's'],
    ['being text', '{}', 'invalid_type', 's'],
    ['a root that is a list', { type: 'array', items: text }, 'unsupported_value', 's.type'],
    ['a root that is one of several', { type: 'object', anyOf: [object({})] }, 'unsupported_value', 's.anyOf'],
    ['an optional property', object({ a: text, b: text }, { required: ['a'] }), 'invalid_request', 's.required'],
    ['a required property that is none', object({ a: text }, { required: ['a', 'b'] }), 'invalid_request', 's.required'],
    ['requirements in words', object({ a: text }, { required: 'a' }), 'invalid_type', 's.required'],
    ['other properties', object({ a: text }, { additionalProperties: true }), 'invalid_request', 's.additionalProperties'],
    ['not saying whether there are others', { type: 'object', properties: {} }, 'invalid_request', 's.additionalProperties'],
    [
      'an object inside that is open',
      object({ a: { type: 'object', properties: {} } }),
      'invalid_request',
      's.properties.a.additionalProperties',
    ],
    [
      'an object that may be null and is open',
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
    ['anyOf of nothing', object({ a: { anyOf: [] } }), 'invalid_type', 's.properties.a.anyOf'],
    ['11 objects in one another', nested(11), 'unsupported_value', `s${'.properties.inner'.repeat(10)}`],
    ['5,001 properties', object(properties(5_001)), 'array_above_max_length', 's'],
    ['1,001 values of enums', object({ a: { enum: many(1_001, (index) => index) } }), 'array_above_max_length', 's.properties.a.enum'],
    [
      'an enum of 251 long texts',
      object({ a: { enum: many(251, (index) => `${index}`.padEnd(60)) } }),
      'string_above_max_length',
      's.properties.a.enum',
    ],
    ['names that are too long together', object(properties(2_000, 'p'.repeat(60))), 'string_above_max_length', 's'],
  ])('%s', (_name, schema, code, param) => {
    expect(() => checkStrictSchema(schema, 's')).toThrow(expect.objectContaining({ code, param }))
  })

  it('lists in lists without end, before the stack ends', () => {
    let items: object = text
    for (let depth = 0; depth < 50_000; depth += 1) items = { type: 'array', items }
    expect(() => checkStrictSchema(object({ a: items }), 's')).toThrow(expect.objectContaining({ code: 'unsupported_value' }))
  })

  it('a name without end, of which the path has the beginning', () => {
    expect(() => checkStrictSchema(object({ ['n'.repeat(1_000)]: true }), 's')).toThrow(
      expect.objectContaining({ param: `s.properties.${'n'.repeat(64)}…` }),
    )
  })
})

describe('a strict schema passes with', () => {
  it.each<[string, object]>([
    ['no properties', { type: 'object', additionalProperties: false }],
    ['10 objects in one another', nested(10)],
    ['what may be null', object({ a: { type: ['string', 'null'] }, b: { anyOf: [object({ c: text }), { type: 'null' }] } })],
    [
      'bounds of numbers, texts and lists',
      object({ a: { type: 'number', minimum: 0 }, b: { type: 'string', pattern: '^a' }, c: { type: 'array', items: text, minItems: 1 } }),
    ],
    [
      'itself in itself',
      object(
        { children: { type: 'array', items: { $ref: '#' } }, next: { $ref: '#/$defs/next' } },
        { $defs: { next: object({ v: text }) } },
      ),
    ],
    ['5,000 properties and 1,000 values', object({ ...properties(4_999), a: { enum: many(1_000, (index) => index) } })],
    ['a property that is called as a keyword is', object({ allOf: text, properties: text, required: text })],
  ])('%s', (_name, schema) => {
    expect(() => checkStrictSchema(schema, 's')).not.toThrow()
  })
})
