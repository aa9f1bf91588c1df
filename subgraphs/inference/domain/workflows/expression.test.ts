import { describe, expect, it } from 'vitest'
import { evaluate, parseExpression, RestsOnSkipped, type Scope } from './expression.ts'
import { renderText, renderValue } from './template.ts'

const scope: Scope = {
  inputs: { name: 'Sur', count: 3, tags: ['a', 'b'], nothing: null, 'odd name': 1 },
  nodes: {
    find: {
      results: [
        { text: 'one', pages: [1, 2] },
        { text: 'two', pages: [3] },
      ],
      count: 2,
    },
  },
  item: { id: 7 },
  index: 0,
}

describe('Workflow expression', () => {
  for (const [text, value] of [
    ['inputs.name', 'Sur'],
    ['inputs["odd name"]', 1],
    ['inputs', scope.inputs],
    ['nodes.find.results[0].text', 'one'],
    ['nodes.find.results[9].text', null],
    ['nodes.find.results[*].text', ['one', 'two']],
    ['nodes.find.results[*].pages[*]', [1, 2, 3]],
    ['nodes.find.results[*].text | join("\\n")', 'one\ntwo'],
    ['nodes.find.results[*].text | join("\n\t")', 'one\n\ttwo'],
    ['nodes.find.results | length', 2],
    ['nodes.find.results | first | json', '{"text":"one","pages":[1,2]}'],
    ['inputs.nothing ?? inputs.absent ?? "else" | upper', 'ELSE'],
    ['inputs.tags | last', 'b'],
    ['inputs.tags | take(1)', ['a']],
    ['inputs.name | truncate(2) | lower', 'su'],
    ['"😀x" | truncate(1)', ''],
    ['item.id', 7],
    ['index', 0],
    ['nodes.gone.text ?? "skipped"', 'skipped'],
    ['inputs.constructor', null],
    ['inputs.tags.length', null],
    ['true', true],
    ['-1.5', -1.5],
  ] as const) {
    it(`\`${text}\` evaluates to ${JSON.stringify(value)}`, () => expect(evaluate(parseExpression(text), scope)).toEqual(value))
  }

  for (const text of [
    '',
    'process.env',
    'inputs.',
    'inputs.a b',
    'inputs[x]',
    'inputs.a | eval',
    'inputs.a | join',
    'inputs.a | take("1")',
    'inputs.a ??',
    '"a',
    'inputs.a()',
    '1 + 1',
  ]) {
    it(`\`${text}\` is invalid`, () => expect(() => parseExpression(text)).toThrow(SyntaxError))
  }

  it('that depends only on a skipped node has no value', () => {
    expect(() => evaluate(parseExpression('nodes.gone.text'), scope)).toThrow(RestsOnSkipped)
  })

  it('refuses inputs that its functions do not accept', () => {
    expect(() => evaluate(parseExpression('inputs.count | first'), scope)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it('limits the lists that it creates', () => {
    const wide = { inputs: new Array(101).fill(new Array(100).fill(0)), nodes: {} }
    expect(() => evaluate(parseExpression('inputs[*][*]'), wide)).toThrow(expect.objectContaining({ code: 'run_limit_exceeded' }))
  })
})

describe('Workflow template', () => {
  it('replaces its expressions with their values', () => {
    expect(renderText('{{inputs.name}}: {{ inputs.count }} {{ inputs.tags }}{{ inputs.nothing }} {{ "}}" }} { }', scope)).toBe(
      'Sur: 3 ["a","b"] }} { }',
    )
  })

  it('preserves the type of a single reference', () => {
    const value = { n: { $ref: 'inputs.count' }, list: [{ $ref: 'inputs.tags' }, '{{ inputs.count }}'], $ref: 1 }
    expect(renderValue(value, scope)).toEqual({ n: 3, list: [['a', 'b'], '3'], $ref: 1 })
  })

  it('limits the size of its result', () => {
    const long = { inputs: { text: 'x'.repeat(200_000) }, nodes: {} }
    expect(() => renderText('{{ inputs.text }}{{ inputs.text }}', long)).toThrow(expect.objectContaining({ code: 'run_limit_exceeded' }))
  })
})
