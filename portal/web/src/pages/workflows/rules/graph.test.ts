import { describe, expect, it } from 'vitest'
import type { Definition } from './definition.ts'
import { layOut, listEdges, namesIn, OUTPUT } from './graph.ts'

const DEFINITION: Definition = {
  nodes: [
    { id: 'find', type: 'search', collection_id: 'col_1', query: '{{ inputs.question }}' },
    { id: 'ask', type: 'chat', model: 'm', messages: [{ role: 'user', content: '{{ nodes.find.text }} {{ nodes.find.count }}' }] },
    { id: 'about', type: 'branch', cases: [{ name: 'money', when: { left: { $ref: 'nodes.ask.text' }, op: 'contains', right: 'x' } }] },
    { id: 'finance', type: 'template', template: '{{ nodes.ask.text }}', after: ['about.money'] },
    { id: 'other', type: 'template', template: 'x', after: ['about.default'] },
  ],
  output: { answer: { $ref: 'nodes.finance.text ?? nodes.other.text' } },
}

describe('Names in a workflow', () => {
  it('include the paths of templates and of references, and no texts', () => {
    expect([...namesIn('{{ nodes.a.items[*].text | join("nodes.b") }} nodes.c {{ nodes["d"].text }}')]).toEqual(['a', 'd'])
    expect([...namesIn({ x: [{ $ref: 'inputs.nodes.no ?? nodes.e' }] })]).toEqual(['e'])
  })
})

describe('Edges of a workflow', () => {
  it('are one for each pair, with its case', () => {
    expect(listEdges(DEFINITION)).toEqual([
      { from: 'find', to: 'ask', chosen: null },
      { from: 'ask', to: 'about', chosen: null },
      { from: 'about', to: 'finance', chosen: 'money' },
      { from: 'ask', to: 'finance', chosen: null },
      { from: 'about', to: 'other', chosen: 'default' },
      { from: 'finance', to: OUTPUT, chosen: null },
      { from: 'other', to: OUTPUT, chosen: null },
    ])
  })
})

describe('Layout of a workflow', () => {
  it('places each node after its dependencies', () => {
    expect(layOut(DEFINITION, listEdges(DEFINITION))).toEqual([
      { id: 'find', column: 0, row: 0 },
      { id: 'ask', column: 1, row: 0 },
      { id: 'about', column: 2, row: 0 },
      { id: 'finance', column: 3, row: -0.5 },
      { id: 'other', column: 3, row: 0.5 },
      { id: OUTPUT, column: 4, row: 0 },
    ])
  })

  it('terminates for a cycle', () => {
    const circle: Definition = {
      nodes: [
        { id: 'a', type: 'template', template: '{{ nodes.b.text }}' },
        { id: 'b', type: 'template', template: '{{ nodes.a.text }}' },
      ],
      output: null,
    }
    expect(layOut(circle, listEdges(circle))).toHaveLength(3)
  })
})
