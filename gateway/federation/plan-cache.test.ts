import { parse } from 'graphql'
import { expect, it } from 'vitest'
import type { Prepared } from '../documents.ts'
import type { ExecutablePlan } from './execute-plan.ts'
import { PlanCache } from './plan-cache.ts'

const preparedOf = (hash: string) => ({ hash, operationName: undefined, document: parse('{ ping }') }) as unknown as Prepared
/** Takes a megabyte. */
const plan = { node: { kind: 'Fetch', operation: 'x'.repeat(262_144) } } as unknown as ExecutablePlan

it('many plans of one organization do not push out those of another', () => {
  const plans = new PlanCache()
  plans.set(preparedOf('of b'), plan, 'org_b')
  for (let i = 0; i < 100; i++) plans.set(preparedOf(`${i.toString(16)} of a`), plan, 'org_a')
  expect(plans.get(preparedOf('of b'))).toBe(plan)
  expect(plans.get(preparedOf('63 of a'))).toBe(plan)
  expect(plans.get(preparedOf('0 of a'))).toBeUndefined()
})
