import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { describePlan } from './describe-plan.ts'
import { createPlanner } from './planner.ts'

const sdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const { plan } = createPlanner(sdl)
const planOf = (text: string) => describePlan(plan(text))

describe('the text of a plan', () => {
  it.each([
    ['{ organization { id name } }', 'billing'],
    ['{ organization { id } collections { totalCount } }', '(billing + knowledge)'],
    ['{ organization { quota { vectors { used } } } }', 'billing > knowledge for Organization'],
    ['subscription { documentUpdated { document { id } } }', 'knowledge'],
  ])('of %s names the parts in turn and at once', (text, expected) => {
    expect(planOf(text)).toBe(expected)
  })

  it('has no name that a caller chose', () => {
    expect(planOf('query Chosen { mine: organization { chosen: quota { vectors { used } } } }')).not.toMatch(/chosen|mine/i)
  })
})
