import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { deleteOrganization, resumeOrganization } from '../../accounts/use-cases/change-organization.ts'
import { createOrganization } from '../../accounts/use-cases/create-organization.ts'
import { ownErasureQueue } from '../../accounts/use-cases/erasures/erase-organization.ts'
import { principalOfApiKey } from '../../accounts/use-cases/find-principal.ts'
import { accountsOf, importAccounts } from '../../portable.ts'
import { STORES } from '../../test-support/stores.ts'
import { ManualClock, makePrincipal, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../deps.ts'

const OPERATOR = makePrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const ARCHIVE = `exp_${'a'.repeat(32)}`
const EVE = {
  ...{ issuer: 'https://login.test', subject: 'eve', email: null, name: null, role: 'viewer' as const },
  ...{ createdAt: new Date(0), lastSeenAt: new Date(0), removedAt: null },
}

for (const { name, open } of STORES)
  describe(`accounts that are imported into ${name}`, () => {
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

    /** The archived records of an organization, as lines by kind. */
    async function exported(id: string): Promise<ReadonlyMap<string, readonly string[]>> {
      const lines = new Map<string, string[]>()
      const { write } = await accountsOf(there.collections, id)
      await write({
        record: async (kind, record) => void lines.set(kind.name, [...(lines.get(kind.name) ?? []), kind.toLine(record)]),
        file: async () => undefined,
        leave: () => undefined,
      })
      return lines
    }

    async function take(lines: ReadonlyMap<string, readonly string[]>, organizationId: string) {
      const importing = importAccounts({ ...here, pepper: here.peppers.current }, { organizationId, archive: ARCHIVE })
      for (const taker of importing.takers.records) {
        const records = (lines.get(taker.kind.name) ?? []).map((line) => taker.kind.parse(JSON.parse(line)) as never)
        if (records.length === 0) continue
        await taker.check?.(records)
        await taker.take(records)
      }
      return importing
    }

    it('are suspended until the end, cannot be resumed before it, and then have a new key and an empty wallet', async () => {
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
        const importing = await take(lines, _id)
        expect(await importing.state()).toBe('begun')
      }
      await expect(resumeOrganization(here, OPERATOR, _id)).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(
        importAccounts({ ...here, pepper: here.peppers.current }, { organizationId: _id, archive: `exp_${'b'.repeat(32)}` }).state(),
      ).rejects.toThrow(/has not ended/)

      const { finish, state } = importAccounts({ ...here, pepper: here.peppers.current }, { organizationId: _id, archive: ARCHIVE })
      const secret = await finish()
      expect(await finish()).toBe(secret)
      expect(await state()).toBe('done')
      const { secretFingerprint } = here.peppers.current
      const labelled = await here.collections.apiKeys.find({ secretFingerprint }, { limit: 5 })
      expect(labelled.map(({ name }) => name)).toContain('Admin key of the import')
      expect(await principalOfApiKey(here, secret!)).toMatchObject({ organizationId: _id, scopes: ['admin'], isSuspended: false })
      expect(await finish()).toBeNull()
      await expect(principalOfApiKey(here, key)).rejects.toMatchObject({ code: 'invalid_api_key' })
      expect(await here.collections.apiKeys.findOne({ _id: apiKey._id })).toMatchObject({ scopes: ['admin'], last4: '' })
      expect(await here.collections.wallets.findOne({ _id })).toMatchObject({
        ...{ available: 0, held: 0, sequence: 0 },
        spending: { [apiKey._id]: { limit: { amount: 7, period: 'day' }, totalSpent: 0 } },
      })
      await expect(
        importAccounts({ ...here, pepper: here.peppers.current }, { organizationId: _id, archive: `exp_${'b'.repeat(32)}` }).state(),
      ).rejects.toThrow(/is here already/)
    })

    it('have no key or member that acts by, descends from or belongs to another organization', async () => {
      const victim = await createOrganization(here, OPERATOR, { name: 'Victim' })
      const { organization, apiKey } = await createOrganization(there, OPERATOR, { name: 'Evil' })
      const [_id, ofVictim] = [`mem_${'1'.repeat(32)}`, `mem_${'2'.repeat(32)}`]
      const lines = await exported(organization._id)
      const own = JSON.parse(lines.get('billing/api-keys')![0]!)
      const taking = (kind: string, record: object) => take(new Map([...lines, [kind, [JSON.stringify(record)]]]), organization._id)
      await here.collections.members.insertOne({
        ...{ ...EVE, _id: ofVictim, organizationId: victim.organization._id, apiKeyId: victim.apiKey._id },
      })
      for (const key of [
        { ...own, _id: victim.apiKey._id },
        { ...own, ancestors: [victim.apiKey._id] },
        { ...own, memberId: ofVictim },
      ])
        await expect(taking('billing/api-keys', key)).rejects.toThrow(/is here already/)
      await expect(taking('billing/members', { ...EVE, _id, apiKeyId: victim.apiKey._id })).rejects.toThrow(/but not key_.* itself/)
      await taking('billing/members', { ...EVE, _id, apiKeyId: apiKey._id, lastSeenAt: '2999-01-01T00:00:00.000Z' })
      expect(await here.collections.members.findOne({ _id })).toMatchObject({
        organizationId: organization._id,
        lastSeenAt: here.clock.now(),
      })
    })

    it('have the keys of members who came while they were exported', async () => {
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
        leave: () => undefined,
      })
      const ofPeople = kinds.filter((kind) => ['billing/api-keys', 'billing/members'].includes(kind))
      expect(ofPeople).toEqual(['billing/api-keys', 'billing/api-keys', 'billing/members'])
    })

    it('can be deleted before the end, and are then not imported under the same id', async () => {
      const { organization } = await createOrganization(there, OPERATOR, { name: 'Half' })
      const importing = await take(await exported(organization._id), organization._id)
      await deleteOrganization(here, OPERATOR, organization._id)
      // What is written after its erasure is erased, too.
      const isErasing = async () => (await here.collections.organizations.findOne({ _id: organization._id }))!.erasingSince !== undefined
      for (const refused of [() => importing.finish(), () => importing.state()]) {
        const signal = AbortSignal.timeout(10_000)
        const [task] = await ownErasureQueue(here).list(signal)
        await ownErasureQueue(here).finish(task!, [], signal)
        expect(await isErasing()).toBe(false)
        await expect(refused()).rejects.toThrow(/--as new/)
        expect(await isErasing()).toBe(true)
      }
      await expect(accountsOf(here.collections, organization._id)).rejects.toThrow(/is deleted/)
    })
  })
