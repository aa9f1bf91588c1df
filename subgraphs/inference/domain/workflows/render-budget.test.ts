import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holds } from './condition.ts'
import type { Scope } from './expression.ts'
import { jsonLength, RenderBudget } from './render-budget.ts'
import { renderText, renderValue } from './template.ts'

const LONG = 'x'.repeat(250_000)
const limit = expect.objectContaining({ code: 'run_limit_exceeded' })

describe('JSON length', () => {
  it('is the length of the JSON, or reports that it is longer', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(60), (value, most) => {
        const { length } = JSON.stringify(value)
        const counted = jsonLength(value, most)
        expect(counted <= most ? counted : 'more').toBe(length <= most ? length : 'more')
      }),
    )
  })

  it('stops counting at the limit, however often a value is repeated in another', () => {
    let value: unknown = 'x'
    for (let level = 0; level < 40; level++) value = [value, value]
    expect(jsonLength(value, 65_536)).toBeGreaterThan(65_536)
  })
})

describe('Render budget', () => {
  const names = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`n${i}`, 1]))
  const scope: Scope = { inputs: { x: LONG, list: Array.from({ length: 10_000 }, () => 'y'), names }, nodes: {} }
  const many = (template: string) => Array.from({ length: 2_000 }, () => template)

  it.each([
    ['texts', many('a{{ inputs.x }}')],
    ['functions of texts', many('{{ inputs.x | lower | truncate(1) }}')],
    ['JSON', many('{{ inputs.names | json | truncate(1) }}')],
    ['counts of names', many('{{ inputs.names | length }}')],
    ['parts of lists', many('{{ inputs.list | take(10000) | length }}')],
    ['paths to many', many('{{ inputs.list[*] | length }}')],
    ['a long separator', `{{ inputs.list | join("${'-'.repeat(900)}") | truncate(1) }}`],
  ])('stops a short template while it expands: %s', (_what, template) => {
    const begun = process.cpuUsage()
    expect(() => renderValue(template, scope)).toThrow(limit)
    expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(2_000)
  })

  it('stops the conditions of a branch by their total', () => {
    const one = { left: { $ref: 'inputs.x' }, op: 'ne', right: { $ref: 'inputs.x' } } as const
    expect(holds(one, scope)).toBe(false)
    expect(() => holds({ any: many('').map(() => one) }, scope)).toThrow(limit)
  })

  it('allows a result up to what a node may read', () => {
    const budget = new RenderBudget()
    for (let i = 0; i < 8; i++) expect(renderText('{{ inputs.x | upper }}', scope, budget)).toHaveLength(LONG.length)
  })
})
