import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { deleteOrganization, resumeOrganization } from '../../accounts/use-cases/change-organization.ts'
import { createOrganization } from '../../accounts/use-cases/create-organization.ts'
import { ownErasureQueue } from '../../accounts/use-cases/erasures/erase-organization.ts'
import { endErasures, notePartEnded } from '../../accounts/use-cases/erasures/erasures.ts'
import { principalOfApiKey } from '../../accounts/use-cases/find-principal.ts'
import { NOTHING_SPENT } from '../../ledger/domain/key-spending.ts'
import { createPrincipal, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../deps.ts'
import { accountsOf } from './export-accounts.ts'
import { type ImportedRules, importAccounts } from './import-accounts.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const ARCHIVE = `exp_${'a'.repeat(32)}`
const EVE = {
  ...{ issuer: 'https://login.test', subject: 'eve', email: null, name: null, role: 'viewer' as const },
  ...{ createdAt: new Date(0), lastSeenAt: new Date(0), removedAt: null },
}

for (const { name, open } of STORES)
  describe(`Account import into ${name}`, () => {
    let from: DocumentStore
    let to: DocumentStore
    let there: BillingDeps
    let here: BillingDeps
    beforeEach(async () => {
      from = await open()
      to = await open()
      there = openBilling(from, new ManualClock())
      here = openBilling(to, new ManualClock())
    })
    afterEach(async () => {
      await from[Symbol.asyncDispose]()
      await to[Symbol.asyncDispose]()
    })

    /** Returns the archived records of an organization, as lines by kind. */
    async function exported(id: string): Promise<ReadonlyMap<string, readonly string[]>> {
      const lines = new Map<string, string[]>()
      const { write } = await accountsOf(there.collections, id)
      await write({
        record: async (kind, record) => void lines.set(kind.name, [...(lines.get(kind.name) ?? []), kind.toLine(record)]),
        file: async () => undefined,
        skip: () => undefined,
      })
      return lines
    }

    const rules: ImportedRules[] = []
    const importInto = (organizationId: string, archive = ARCHIVE) =>
      importAccounts({ ...here, onOrganization: (each) => rules.push(each) }, { organizationId, archive })

    async function importLines(lines: ReadonlyMap<string, readonly string[]>, organizationId: string) {
      const importing = importInto(organizationId)
      for (const taker of importing.takers.records) {
        const records = (lines.get(taker.kind.name) ?? []).map((line) => taker.kind.parse(JSON.parse(line)) as never)
        if (records.length === 0) continue
        await taker.check?.(records)
        await taker.write(records)
      }
      return importing
    }

    it('suspends the organization until the end without a way to resume it, then issues a new key and an empty wallet', async () => {
      const { organization, apiKey, key } = await createOrganization(there, OPERATOR, { name: 'Moves' })
      const { _id } = organization
      await there.collections.apiKeys.findOneAndUpdate({ _id: apiKey._id }, { $set: { scopes: ['admin', 'operator'] } })
      await there.collections.wallets.findOneAndUpdate(
        { _id },
        {
          $set: {
            available: 5,
            [`spending.${apiKey._id}`]: {
              limit: { amount: 7, period: 'day' },
              day: '2026-01-01',
              daySpent: 3,
              monthSpent: 3,
              totalSpent: 3,
            },
          },
        },
      )
      const lines = await exported(_id)
      expect([...lines.values()].flat().join()).not.toContain(apiKey.digest)
      for (let repeat = 0; repeat < 2; repeat++) {
        const importing = await importLines(lines, _id)
        expect(await importing.state()).toBe('begun')
      }
      await expect(resumeOrganization(here, OPERATOR, _id)).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(importInto(_id, `exp_${'b'.repeat(32)}`).state()).rejects.toThrow(/has not ended/)

      const { finish, state } = importInto(_id)
      const secret = await finish(here.pepper())
      expect(await finish(here.pepper())).toBe(secret)
      expect(await state()).toBe('done')
      expect(await principalOfApiKey(here, secret!)).toMatchObject({ organizationId: _id, scopes: ['admin'], isSuspended: false })
      expect(await finish(here.pepper())).toBeNull()
      await expect(principalOfApiKey(here, key)).rejects.toMatchObject({ code: 'invalid_api_key' })
      expect(await here.collections.apiKeys.findOne({ _id: apiKey._id })).toMatchObject({ scopes: ['admin'], last4: '' })
      expect(await here.collections.wallets.findOne({ _id })).toMatchObject({
        ...{ available: 0, held: 0, sequence: 0 },
        spending: { [apiKey._id]: { limit: { amount: 7, period: 'day' }, totalSpent: 0 } },
      })
      await expect(importInto(_id, `exp_${'b'.repeat(32)}`).state()).rejects.toThrow(/already exists here/)
    })

    it('refuses keys and members that act by, descend from or belong to another organization', async () => {
      const victim = await createOrganization(here, OPERATOR, { name: 'Victim' })
      const { organization, apiKey } = await createOrganization(there, OPERATOR, { name: 'Evil' })
      const [_id, ofVictim] = [`mem_${'1'.repeat(32)}`, `mem_${'2'.repeat(32)}`]
      const lines = await exported(organization._id)
      const own = JSON.parse(lines.get('billing/api-keys')![0]!)
      const taking = (kind: string, record: object) => importLines(new Map([...lines, [kind, [JSON.stringify(record)]]]), organization._id)
      await here.collections.members.insertOne({
        ...{ ...EVE, _id: ofVictim, organizationId: victim.organization._id, apiKeyId: victim.apiKey._id },
      })
      for (const key of [
        { ...own, _id: victim.apiKey._id },
        { ...own, ancestors: [victim.apiKey._id] },
        { ...own, memberId: ofVictim },
      ])
        await expect(taking('billing/api-keys', key)).rejects.toThrow(/already exists here/)
      await expect(taking('billing/members', { ...EVE, _id, apiKeyId: victim.apiKey._id })).rejects.toThrow(/but not key_.* itself/)
      await taking('billing/members', { ...EVE, _id, apiKeyId: apiKey._id, lastSeenAt: '2999-01-01T00:00:00.000Z' })
      expect(await here.collections.members.findOne({ _id })).toMatchObject({
        organizationId: organization._id,
        lastSeenAt: here.clock.now(),
      })
    })

    /** Returns the archive of an organization with this many keys, each with a spend limit. */
    async function withKeys(live: number, revoked: number, limits = live + revoked) {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Many' })
      const lines = await exported(organization._id)
      const [first] = lines.get('billing/api-keys')!.map((line) => JSON.parse(line))
      const keys = Array.from({ length: live + revoked }, (_, i) => ({
        ...{ ...first, _id: `key_${String(i).padStart(32, '0')}`, revokedAt: i < live ? null : '2026-01-01T00:00:00.000Z' },
      }))
      const spendLimits = Array.from({ length: limits }, (_, i) => ({ _id: keys[i % keys.length]!._id, amount: 7, period: 'day' }))
      const asLines = (records: readonly object[]) => records.map((record) => JSON.stringify(record))
      return {
        organizationId: organization._id,
        lines: new Map([...lines, ['billing/api-keys', asLines(keys)], ['billing/spend-limits', asLines(spendLimits)]]),
      }
    }

    it('accepts as many keys and spend limits as an organization may have, and writes the limits at once', async () => {
      const { organizationId, lines } = await withKeys(1_100, 2_000)
      await importLines(lines, organizationId)
      const wallet = await here.collections.wallets.findOne({ _id: organizationId })
      expect(Object.keys(wallet!.spending)).toHaveLength(3_100)
      expect(wallet).toMatchObject({ revision: 1, spending: { [`key_${'0'.repeat(32)}`]: { limit: { amount: 7, period: 'day' } } } })
    })

    it('refuses more keys or spend limits before anything is written, in any number of parts', async () => {
      const keys = await withKeys(1_101, 0)
      const limits = await withKeys(1, 0, 3_101)
      for (const [{ organizationId, lines }, kind, problem] of [
        [keys, 'billing/api-keys', /more than 1100 keys/],
        [limits, 'billing/spend-limits', /more than 3100 spend limits/],
      ] as const) {
        const taker = importInto(organizationId).takers.records.find((each) => each.kind.name === kind)!
        const records = lines.get(kind)!.map((line) => taker.kind.parse(JSON.parse(line)) as never)
        await taker.check!(records.slice(0, -1))
        await expect(taker.check!(records.slice(-1))).rejects.toThrow(problem)
      }
    })

    it('refuses a spend limit of a key that is not imported', async () => {
      const { organizationId, lines } = await withKeys(1, 0)
      const stray = JSON.stringify({ _id: `key_${'f'.repeat(32)}`, amount: 7, period: 'day' })
      const strange = new Map([...lines, ['billing/spend-limits', [...lines.get('billing/spend-limits')!, stray]]])
      await expect(importLines(strange, organizationId)).rejects.toThrow(/but not key_f+ itself/)
      expect(await here.collections.wallets.findOne({ _id: organizationId })).toMatchObject({ spending: {} })
    })

    it('reports the plan, limits and suspension before anything is written', async () => {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Rules' })
      const set = { limits: { concurrency: 3 }, suspendedAt: new Date(0), suspensionReason: 'unpaid' }
      await there.collections.organizations.findOneAndUpdate({ _id: organization._id }, { $set: set })
      const lines = await exported(organization._id)
      const [taker] = importInto(organization._id).takers.records
      rules.length = 0
      await taker!.check!(lines.get('billing/organization')!.map((line) => taker!.kind.parse(JSON.parse(line)) as never))
      expect(rules).toMatchObject([{ plan: organization.plan, ...set }])
      expect(await here.collections.organizations.findOne({ _id: organization._id })).toBeNull()
    })

    it('imports a key created during the export with its spend limit, and no limit of a deleted key', async () => {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Busy' })
      const [late, gone] = [`key_${'0'.repeat(32)}`, `key_${'1'.repeat(32)}`]
      const { write } = await accountsOf(there.collections, organization._id)
      const written: string[] = []
      await write({
        async record({ name }, record) {
          written.push(`${name} ${(record as { readonly _id?: string })._id}`)
          if (name !== 'billing/api-keys' || (await there.collections.apiKeys.findOne({ _id: late }))) return
          const key = { ...{ scopes: [], modelAllowlist: null, digest: 'of the late', last4: '' }, ...{ expiresAt: null, revokedAt: null } }
          await there.collections.apiKeys.insertOne({
            ...{ ...key, _id: late, organizationId: organization._id, name: 'Late', createdAt: new Date(0) },
          })
          const limited = { ...NOTHING_SPENT, limit: { amount: 7, period: 'day' } }
          const spending = { [`spending.${late}`]: limited, [`spending.${gone}`]: limited }
          await there.collections.wallets.findOneAndUpdate({ _id: organization._id }, { $set: spending })
        },
        file: async () => undefined,
        skip: () => undefined,
      })
      expect(written.slice(2, 4)).toEqual([`billing/api-keys ${late}`, `billing/spend-limits ${late}`])
      expect(written.join()).not.toContain(gone)
    })

    it('imports the keys of members who joined during the export', async () => {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Busy' })
      const { _id: organizationId } = organization
      const [_id, memberId] = [`key_${'0'.repeat(32)}`, `mem_${'4'.repeat(32)}`]
      const { write } = await accountsOf(there.collections, organizationId)
      const kinds: string[] = []
      await write({
        async record({ name }) {
          kinds.push(name)
          if (name !== 'billing/api-keys' || (await there.collections.apiKeys.findOne({ _id }))) return
          const key = { ...{ scopes: [], modelAllowlist: null, digest: 'no secret', last4: '' }, ...{ expiresAt: null, revokedAt: null } }
          await there.collections.apiKeys.insertOne({ _id, organizationId, name: 'Late', memberId, createdAt: new Date(0), ...key })
          await there.collections.members.insertOne({ ...EVE, _id: memberId, organizationId, apiKeyId: _id })
        },
        file: async () => undefined,
        skip: () => undefined,
      })
      const memberKinds = kinds.filter((kind) => ['billing/api-keys', 'billing/members'].includes(kind))
      expect(memberKinds).toEqual(['billing/api-keys', 'billing/api-keys', 'billing/members'])
    })

    it('can be deleted before the end, and is then not imported under the same ID', async () => {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Half' })
      const importing = await importLines(await exported(organization._id), organization._id)
      await deleteOrganization(here, OPERATOR, organization._id)
      // Data that is written after its erasure is erased, too.
      const isErasing = async () => (await here.collections.organizations.findOne({ _id: organization._id }))!.erasingSince !== undefined
      for (const refused of [() => importing.finish(here.pepper()), () => importing.state()]) {
        const signal = AbortSignal.timeout(10_000)
        const [task] = await ownErasureQueue(here).list(signal)
        for (const part of ['billing', 'knowledge', 'inference'] as const) await notePartEnded(here, part, task!.id, [])
        await endErasures(here, signal)
        expect(await isErasing()).toBe(false)
        await expect(refused()).rejects.toThrow(/--as new/)
        expect(await isErasing()).toBe(true)
      }
      await expect(accountsOf(here.collections, organization._id)).rejects.toThrow(/is deleted/)
    })
  })
