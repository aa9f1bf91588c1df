import { readFileSync } from 'node:fs'
import { parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { describePlan } from './describe-plan.ts'
import { loadSupergraph } from './loaded-supergraph.ts'

const sdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const { plan } = await loadSupergraph(sdl)
const planOf = async (text: string) => describePlan(await plan({ document: parse(text), operationName: undefined, hash: '' }))

describe('the text of a plan', () => {
  it.each([
    ['{ organization { id name } }', 'billing'],
    ['{ organization { id } collections { totalCount } }', '(billing + knowledge)'],
    ['{ organization { quota { vectors { used } } } }', 'billing > knowledge for Organization'],
    ['subscription { documentUpdated { document { id } } }', 'knowledge'],
  ])('of %s names the parts in turn and at once', async (text, expected) => {
    expect(await planOf(text)).toBe(expected)
  })

  it('has no name that a caller chose', async () => {
    expect(await planOf('query Chosen { mine: organization { chosen: quota { vectors { used } } } }')).not.toMatch(/chosen|mine/i)
  })
})
