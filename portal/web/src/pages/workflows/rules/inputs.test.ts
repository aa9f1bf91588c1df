import { describe, expect, it } from 'vitest'
import { fieldsOf, readInputs, WHOLE } from './inputs.ts'

const SCHEMA = {
  type: 'object',
  required: ['question', 'count'],
  properties: {
    question: { type: 'string', title: 'Question', description: 'What you ask.', minLength: 3 },
    count: { type: 'integer', default: 3, maximum: 5 },
    isShort: { type: 'boolean' },
    tone: { enum: ['calm', 7, null] },
    topics: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    more: { type: 'object' },
  },
}

const read = (draft: Record<string, string>) => readInputs(SCHEMA, fieldsOf(SCHEMA), draft)

describe('Workflow input fields', () => {
  it('include one field per property', () => {
    expect(fieldsOf(SCHEMA).map(({ name, kind, start }) => [name, kind, start])).toEqual([
      ['question', 'text', ''],
      ['count', 'integer', '3'],
      ['isShort', 'boolean', ''],
      ['tone', 'choice', ''],
      ['topics', 'lines', ''],
      ['more', 'json', ''],
    ])
    expect(fieldsOf(SCHEMA)[0]).toMatchObject({ title: 'Question', description: 'What you ask.', isRequired: true })
  })

  it('start with the inputs of an earlier run', () => {
    const earlier = { question: 'x', tone: 7, topics: ['a', 'b'], more: { a: 1 }, isShort: true }
    expect(fieldsOf(SCHEMA, earlier).map(({ start }) => start)).toEqual(['x', '3', 'true', '1', 'a\nb', '{\n  "a": 1\n}'])
  })

  it.each([undefined, true, { type: 'object' }, { properties: {} }])('include one JSON field for %j', (schema) => {
    expect(fieldsOf(schema)).toMatchObject([{ name: WHOLE, kind: 'json', start: '{}' }])
  })
})

describe('Workflow inputs', () => {
  it('accept each type, in any digits', () => {
    const { inputs, problems } = read({ question: 'كم؟', count: '٤', isShort: 'true', tone: '2', topics: 'a\n\nb\n', more: '{"x": []}' })
    expect(problems.size).toBe(0)
    expect(inputs).toEqual({ question: 'كم؟', count: 4, isShort: true, tone: null, topics: ['a', 'b'], more: { x: [] } })
  })

  it('report errors by field', () => {
    const { problems } = read({ question: '', count: '1.5', topics: 'a\nb\nc', more: '{' })
    expect(Object.fromEntries(problems)).toEqual({
      question: 'missing',
      count: 'number',
      topics: { path: ['topics'], keyword: 'maxItems', wanted: '2' },
      more: 'json',
    })
    expect(read({ question: 'x' }).problems.get('question')).toMatchObject({ keyword: 'minLength', wanted: '3' })
  })

  it('accept any object where the schema lists nothing', () => {
    const fields = fieldsOf(undefined)
    expect(readInputs(undefined, fields, { [WHOLE]: '{"a": 1}' }).inputs).toEqual({ a: 1 })
    expect(readInputs(undefined, fields, { [WHOLE]: '[]' }).problems.get(WHOLE)).toBe('json')
  })
})
