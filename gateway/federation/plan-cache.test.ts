import type { QueryPlan } from '@apollo/query-planner'
import { expect, it } from 'vitest'
import { PlanCache, planKey } from './plan-cache.ts'

/** Takes a megabyte. */
const plan = { node: { kind: 'Fetch', operation: 'x'.repeat(262_144) } } as unknown as QueryPlan

it('many plans of one organization do not push out those of another', async () => {
  const plans = new PlanCache()
  await plans.set(planKey('org_b', 'of b'), plan)
  for (let i = 0; i < 100; i++) await plans.set(planKey('org_a', `${i} of a`), plan)
  expect(plans.find(planKey('org_b', 'of b'))).toBe(plan)
  expect(plans.find(planKey('org_a', '99 of a'))).toBe(plan)
  expect(plans.find(planKey('org_a', '0 of a'))).toBeUndefined()
})

it('organizations share plans, and the operations of one document have their own', async () => {
  const plans = new PlanCache()
  await plans.set(planKey('org_a', 'hash', 'First'), plan)
  expect(await plans.get(planKey('org_b', 'hash', 'First'))).toBe(plan)
  expect(await plans.get(planKey('org_a', 'hash', 'Second'))).toBeUndefined()
})

it('callers who need a plan at once wait for the one who makes it', async () => {
  const plans = new PlanCache()
  const key = planKey('org_a', 'hash')
  const callers = Array.from({ length: 10 }, async () => {
    const known = await plans.get(key)
    if (!known) await plans.set(key, plan)
    return known
  })
  expect((await Promise.all(callers)).filter((known) => known === undefined)).toHaveLength(1)
})
