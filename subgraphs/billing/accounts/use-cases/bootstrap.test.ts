import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { audit } from '../../test-support/audit.ts'
import { ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { type BootstrapSettings, bootstrap as begin, decideFirst } from './bootstrap.ts'
import { principalOfApiKey } from './find-principal.ts'

const settings = { apiKey: null, creditNanoUsd: 100n }

async function bootstrap(deps: BillingDeps, bootstrapSettings: BootstrapSettings) {
  return begin(
    deps,
    bootstrapSettings,
    await decideFirst({ ...deps, secret: new Uint8Array(32), secretFingerprint: null }, bootstrapSettings),
  )
}

async function allRecords(store: MemoryDocumentStore) {
  const deps = openBilling(store, new ManualClock())
  const organizations = await deps.collections.organizations.find({}, { limit: 10 })
  const wallets = await deps.collections.wallets.find({}, { limit: 10 })
  const keys = await deps.collections.apiKeys.find({}, { limit: 10 })
  return { organizations, wallets, keys, ledgers: await Promise.all(wallets.map((wallet) => audit(deps, wallet._id))) }
}

async function expectOneOfEach(store: MemoryDocumentStore) {
  const { organizations, wallets, keys, ledgers } = await allRecords(store)
  expect(organizations).toHaveLength(1)
  expect(wallets).toMatchObject([{ _id: organizations[0]!._id, available: 100 }])
  expect(keys).toMatchObject([{ organizationId: organizations[0]!._id }])
  expect(ledgers[0]!.entries).toMatchObject([{ kind: 'top_up', reference: 'bootstrap' }])
}

describe('First start', () => {
  for (const effect of ['failed', 'lost answer'] as const)
    it(`completes after a crash at any call (${effect}), with one organization, one credit and one key`, async () => {
      let died = true
      for (let nth = 1; died; nth++) {
        const store = new MemoryDocumentStore()
        store.failCall(nth, effect)
        const first = await bootstrap(openBilling(store, new ManualClock()), settings).catch(() => undefined)
        died = first === undefined
        store.healFaults()
        const deps = openBilling(store, new ManualClock())
        const key = await bootstrap(deps, settings)
        if (!died) expect(key).toBe(first)
        await expectOneOfEach(store)
        expect(await principalOfApiKey(deps, key!)).toMatchObject({ scopes: ['admin', 'operator'] })
        expect(await bootstrap(deps, settings)).toBeNull()
        expect(nth).toBeLessThan(50)
      }
    })

  it('creates one organization, one credit and one key when several processes start together, and all show the same key', async () => {
    const store = new MemoryDocumentStore()
    const keys = await Promise.all(Array.from({ length: 4 }, () => bootstrap(openBilling(store, new ManualClock()), settings)))
    expect(new Set(keys).size).toBe(1)
    await expectOneOfEach(store)
  })

  it('preserves what the operator has changed since', async () => {
    const store = new MemoryDocumentStore()
    const deps = openBilling(store, new ManualClock())
    await bootstrap(deps, settings)
    const [organization] = (await allRecords(store)).organizations
    await deps.collections.organizations.findOneAndUpdate({ _id: organization!._id }, { $set: { name: 'Renamed' } })
    await bootstrap(openBilling(store, new ManualClock()), { apiKey: null, creditNanoUsd: 500n })
    expect((await allRecords(store)).organizations).toMatchObject([{ name: 'Renamed' }])
    await expectOneOfEach(store)
  })
})
