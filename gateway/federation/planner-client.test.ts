import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSupergraph } from '../../schema/composed.ts'
import { PlannerClient } from './planner-client.ts'

const toPlan = (text: string) => ({ text, operationName: undefined, hash: text })
const fragment = (i: number) => `fragment F${i} on Collection { ... { ...F${i + 1} } ... on Collection { ...F${i + 1} } }`
/** `limitsRule` refuses it: the planner follows millions of selections, which takes it seconds. */
const LONG = toPlan(
  `{ collection(id: "a") { ...F0 } } ${Array.from({ length: 20 }, (_, i) => fragment(i)).join(' ')} fragment F20 on Collection { id }`,
)

describe('the client of the planner', () => {
  let planner: PlannerClient
  beforeAll(() => {
    planner = new PlannerClient(readSupergraph().supergraphSdl, { cpuMs: 500, wallMs: 20_000, heapMb: 256 })
  })
  afterAll(() => planner?.[Symbol.asyncDispose]())

  it('gives up a plan that takes too long, and makes the next', async () => {
    const long = planner.plan(LONG, 'org_a')
    const next = planner.plan(toPlan('{ organization { id } }'), 'org_b')
    await expect(long).rejects.toMatchObject({
      code: 'operation_too_complex',
      message: expect.stringMatching(/^Planning the operation takes too much (time|memory)\./),
    })
    expect((await next).node).toMatchObject({ kind: 'Fetch', serviceName: 'billing' })
  })

  it('plans an operation once for the callers of one organization who wait for it', async () => {
    const many = Array.from({ length: 1_000 }, () => planner.plan(toPlan('{ collections { totalCount } }'), 'org_a'))
    const other = planner.plan(toPlan('{ collections { totalCount } }'), 'org_b')
    expect(new Set(await Promise.all(many)).size).toBe(1)
    expect(await other).not.toBe(await many[0])
    expect(await other).toEqual(await many[0])
  })

  it('lets an organization wait with a hundred operations, and others meanwhile plan theirs', async () => {
    const plan = (text: string, organizationId: string) =>
      planner.plan(toPlan(text), organizationId).then(
        () => organizationId,
        ({ code }) => code,
      )
    const ended: string[] = []
    const many = Array.from({ length: 110 }, (_, i) =>
      plan(`{ c${i}: collections { totalCount } }`, 'org_a').then((who) => ended.push(who)),
    )
    await plan('{ plans { code } }', 'org_b')
    expect(ended.filter((who) => who === 'org_a').length).toBeLessThan(10)
    await Promise.all(many)
    expect(ended.filter((who) => who === 'service_unavailable')).toHaveLength(9)
  })

  it('tells what the planner throws', async () => {
    await expect(planner.plan(toPlan('{ noSuchField }'), 'org_a')).rejects.toThrow('noSuchField')
  })
})
