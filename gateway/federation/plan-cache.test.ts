import type { QueryPlan } from '@apollo/query-planner'
import { expect, it } from 'vitest'
import { TooBusy } from '../../subgraphs/common/errors.ts'
import { PlanCache, planKey } from './plan-cache.ts'

/** A plan of a megabyte. */
const plan = { node: { kind: 'Fetch', operation: 'x'.repeat(262_144) } } as unknown as QueryPlan

it('many plans of one organization do not evict those of another', async () => {
  const plans = new PlanCache()
  await plans.set(planKey('org_b', 'of b'), plan)
  for (let i = 0; i < 100; i++) await plans.set(planKey('org_a', `${i} of a`), plan)
  expect(plans.find(planKey('org_b', 'of b'))).toBe(plan)
  expect(plans.find(planKey('org_a', '99 of a'))).toBe(plan)
  expect(plans.find(planKey('org_a', '0 of a'))).toBeUndefined()
})

it('organizations share plans, and each operation of one document has its own', async () => {
  const plans = new PlanCache()
  await plans.set(planKey('org_a', 'hash', 'First'), plan)
  expect(await plans.get(planKey('org_b', 'hash', 'First'))).toBe(plan)
  expect(await plans.get(planKey('org_a', 'hash', 'Second'))).toBeUndefined()
})

it('concurrent callers of one plan wait for the first to create it', async () => {
  const plans = new PlanCache()
  const key = planKey('org_a', 'hash')
  const callers = Array.from({ length: 10 }, async () => {
    const known = await plans.get(key)
    if (!known) await plans.set(key, plan)
    return known
  })
  expect((await Promise.all(callers)).filter((known) => known === undefined)).toHaveLength(1)
})

it('plans for organizations in round robin', async () => {
  const plans = new PlanCache()
  const order: string[] = []
  const planOf = async (organizationId: string, hash: string) => {
    const key = planKey(organizationId, hash)
    if (await plans.get(key)) return
    order.push(hash)
    await plans.set(key, plan)
  }
  const many = Array.from({ length: 20 }, (_, i) => planOf('org_a', `${i} of a`))
  await Promise.all([...many, planOf('org_b', 'of b')])
  expect(order).toHaveLength(21)
  expect(order.indexOf('of b')).toBeLessThanOrEqual(2)
})

it('refuses an organization with too many operations waiting to be planned, and no other', async () => {
  const plans = new PlanCache()
  const many = Array.from({ length: 110 }, (_, i) => plans.get(planKey('org_a', `${i} of a`)))
  const other = plans.get(planKey('org_b', 'of b'))
  const outcomes = await Promise.allSettled(many)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(9)
  for (const { reason } of refused) expect(reason).toBeInstanceOf(TooBusy)
  expect(await other).toBeUndefined()
})
