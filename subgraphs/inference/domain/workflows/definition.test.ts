import { describe, expect, it } from 'vitest'
import { type Condition, holds } from './condition.ts'
import { readMaxCost, workflowDefinition } from './definition.ts'

const text = (id: string, template: string, more = {}) => ({ id, type: 'template', template, ...more })
const flow = (nodes: readonly unknown[], more = {}) => ({ nodes, output: 'done', ...more })
const check = (value: unknown) => workflowDefinition(value, 'input.definition')
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const branch = { id: 'check', type: 'branch', cases: [{ name: 'yes', when: { left: { $ref: 'inputs.a' }, op: 'eq', right: 1 } }] }

describe('Workflow definition', () => {
  it('with every type of node is accepted', () => {
    const nodes = [
      { id: 'heard', type: 'transcribe', model: 'whisper', file_id: '{{ inputs.file }}', language: 'ar' },
      {
        id: 'find',
        type: 'search',
        collection_id: 'col_1',
        query: '{{ nodes.heard.text }}',
        limit: 5,
        filter: { language: '{{ inputs.l }}' },
      },
      {
        id: 'ask',
        type: 'chat',
        model: 'm',
        messages: [{ role: 'user', content: '{{ nodes.find.text }}' }],
        response_schema: { type: 'object' },
      },
      { ...branch, after: ['ask'] },
      { id: 'agent', type: 'agent', agent_id: 'agt_1', input: '{{ nodes.ask.output | json }}', after: ['check.yes'] },
      {
        id: 'each',
        type: 'map',
        over: { $ref: 'nodes.find.results' },
        at_once: 2,
        node: { type: 'template', template: '{{ item.text }} {{ index }}' },
      },
      text('end', '{{ nodes.agent.text ?? "none" }}', { after: ['check'] }),
    ]
    const definition = flow(nodes, {
      max_cost_usd: '0.25',
      max_seconds: 60,
      inputs: { type: 'object' },
      output: { $ref: 'nodes.end.text' },
    })
    expect(check(definition)).toBe(definition)
    expect(readMaxCost(check(definition))).toBe(250_000_000n)
  })

  for (const [what, value, code, param] of [
    ['nothing', undefined, 'missing_required_parameter', ''],
    ['a text', 'x', 'invalid_type', ''],
    ['an endlessly nested value', flow([text('a', '')], { output: nested(5_000) }), 'invalid_request', ''],
    ['no nodes', flow([]), 'invalid_request', '.nodes'],
    ['51 nodes', flow(Array.from({ length: 51 }, (_, i) => text(`n${i}`, ''))), 'array_above_max_length', '.nodes'],
    ['no output', { nodes: [text('a', '')] }, 'missing_required_parameter', '.output'],
    ['an unknown field', flow([text('a', '')], { other: 1 }), 'unknown_parameter', '.other'],
    ['an unknown type', flow([{ id: 'a', type: 'shell' }]), 'unsupported_value', '.nodes[0].type'],
    ['a field of another type', flow([text('a', '', { model: 'm' })]), 'unknown_parameter', '.nodes[0].model'],
    ['an ID with a dot', flow([text('a.b', '')]), 'unsupported_value', '.nodes[0].id'],
    ['a duplicate ID', flow([text('a', ''), text('a', '')]), 'invalid_request', '.nodes[1].id'],
    ['a reference to an unknown node', flow([text('a', '{{ nodes.b.text }}')]), 'invalid_request', '.nodes[0].template'],
    ['a reference to an unknown output', flow([text('a', ''), text('b', '{{ nodes.a.result }}')]), 'invalid_request', '.nodes[1].template'],
    ['an output without a schema', flow([text('a', ''), text('b', '{{ nodes.a.output }}')]), 'invalid_request', '.nodes[1].template'],
    [
      'an unknown input',
      flow([text('a', '{{ inputs.b }}')], { inputs: { properties: { a: {} } } }),
      'invalid_request',
      '.nodes[0].template',
    ],
    [
      'an output of an unknown node',
      flow([text('a', '')], { output: { a: [{ $ref: 'nodes.c.text' }] } }),
      'invalid_request',
      '.output.a[0]',
    ],
    ['an empty expression', flow([text('a', '{{ inputs. }}')]), 'invalid_request', '.nodes[0].template'],
    ['unclosed braces', flow([text('a', '{{ inputs.a ')]), 'invalid_request', '.nodes[0].template'],
    ['an item outside a map', flow([text('a', '{{ item }}')]), 'invalid_request', '.nodes[0].template'],
    ['a node that waits for itself', flow([text('a', '{{ nodes.a.text }}')]), 'invalid_request', '.nodes[0].template'],
    [
      'a cycle',
      flow([text('a', '{{ nodes.c.text }}'), text('b', '{{ nodes.a.text }}'), text('c', '', { after: ['b'] })]),
      'invalid_request',
      '.nodes[1].template',
    ],
    ['a gate on an unknown node', flow([text('a', '', { after: ['b'] })]), 'invalid_request', '.nodes[0].after[0]'],
    [
      'a gate on a node that is no branch',
      flow([text('a', ''), text('b', '', { after: ['a.yes'] })]),
      'invalid_request',
      '.nodes[1].after[0]',
    ],
    ['a gate on an unknown case', flow([branch, text('b', '', { after: ['check.no'] })]), 'invalid_request', '.nodes[1].after[0]'],
    [
      'an unknown comparison',
      flow([{ ...branch, cases: [{ name: 'x', when: { left: 1, op: 'like' } }] }]),
      'unsupported_value',
      '.nodes[0].cases[0].when.op',
    ],
    [
      'a condition on an unknown node',
      flow([{ ...branch, cases: [{ name: 'x', when: { not: { left: '{{ nodes.z.text }}', op: 'exists' } } }] }]),
      'invalid_request',
      '.nodes[0].cases[0].when.not.left',
    ],
    [
      'a map in a map',
      flow([{ id: 'm', type: 'map', over: [], node: { type: 'map', over: [], node: text('x', '') } }]),
      'unsupported_value',
      '.nodes[0].node.type',
    ],
    [
      'a schema of 40,000 characters',
      flow([text('a', '', { response_schema: { title: 'x'.repeat(40_000) } })]),
      'string_above_max_length',
      '.nodes[0].response_schema',
    ],
    ['a cap of zero', flow([text('a', '')], { max_cost_usd: '0' }), 'unsupported_value', '.max_cost_usd'],
    ['an excessive time limit', flow([text('a', '')], { max_seconds: 21_601 }), 'integer_above_max_value', '.max_seconds'],
  ] as const) {
    it(`with ${what} is refused at its path`, () => {
      expect(() => check(value)).toThrow(expect.objectContaining({ code, param: `input.definition${param}` }))
    })
  }
})

describe('Branch condition', () => {
  const scope = { inputs: { n: 5, t: 'abc', list: [1, 2] }, nodes: {} }
  for (const [condition, expected] of [
    [{ left: { $ref: 'inputs.n' }, op: 'gt', right: 4 }, true],
    [{ left: { $ref: 'inputs.n' }, op: 'gt', right: '4' }, false],
    [{ left: '{{ inputs.n }}', op: 'eq', right: '5' }, true],
    [{ left: { $ref: 'inputs.list' }, op: 'contains', right: 2 }, true],
    [{ left: { $ref: 'inputs.t' }, op: 'contains', right: 'bc' }, true],
    [{ left: { $ref: 'inputs.n' }, op: 'in', right: [1, 5] }, true],
    [{ left: { $ref: 'inputs.absent' }, op: 'exists' }, false],
    [{ left: { $ref: 'inputs.list' }, op: 'ne', right: [1, 2] }, false],
    [{ all: [{ left: 1, op: 'lte', right: 1 }, { not: { left: 1, op: 'lt', right: 1 } }] }, true],
    [
      {
        any: [
          { left: 1, op: 'gte', right: 2 },
          { left: 'a', op: 'eq', right: 'a' },
        ],
      },
      true,
    ],
  ] as readonly (readonly [Condition, boolean])[]) {
    it(`${JSON.stringify(condition)} is ${expected}`, () => expect(holds(condition, scope)).toBe(expected))
  }
})
