import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import { type Erasure, eraseOnce, LATE_WRITES_MS } from '../../../common/erasure/erasing.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { placeHold } from '../../ledger/holds/place-hold.ts'
import { settleHold } from '../../ledger/holds/settle-hold.ts'
import { creditWallet } from '../../ledger/use-cases/credit-wallet.ts'
import { listEntries } from '../../ledger/use-cases/read-ledger.ts'
import { createCard, createPrincipal, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { assignPlan, deleteOrganization, resumeOrganization, suspendOrganization } from './change-organization.ts'
import { createOrganization } from './create-organization.ts'
import { listErasuresToDo, ownErasure, ownErasureQueue } from './erasures/erase-organization.ts'
import { endErasures, noteFound, notePartEnded, receiptId } from './erasures/erasures.ts'
import { principalOfApiKey, principalOfKey } from './find-principal.ts'
import { getOrganization, listChanges, listOrganizations, statusOf } from './organizations.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const NONE = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, audioMilliseconds: 0, searchUnits: 0, pages: 0 }
const CARD = createCard({ inputTokens: 150_000_000n })

for (const { name, open } of STORES)
  describe(`Changes of organizations by operators on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
    })
    afterEach(() => store[Symbol.asyncDispose]())

    async function createTenant(called = 'Tenant') {
      const { organization, apiKey, key } = await createOrganization(deps, OPERATOR, { name: called })
      const { _id } = organization
      await creditWallet(deps, { kind: 'top_up', organizationId: _id, amount: 5_000_000_000n, reference: 'first' })
      return { id: _id, key, keyId: apiKey._id }
    }
    const placeTestHold = (principal: Principal, id = deps.ids('hold')) =>
      placeHold(deps, principal, {
        ...{ id, operation: 'chat_completion', modelId: 'm', requestId: 'req_1', rateCard: CARD },
        ...{ ceiling: { ...NONE, inputTokens: 1_000 }, ttlSeconds: 60 },
      })

    it('a suspended organization places no holds, settles open ones, and works again after it resumes', async () => {
      const { id, key, keyId } = await createTenant()
      const before = await principalOfApiKey(deps, key)
      const held = deps.ids('hold')
      await placeTestHold(before, held)
      const suspended = await suspendOrganization(deps, OPERATOR, { organizationId: id, reason: 'unpaid' })
      expect(suspended).toMatchObject({ suspendedAt: clock.now(), suspensionReason: 'unpaid' })
      await expect(principalOfApiKey(deps, key)).rejects.toMatchObject({ code: 'organization_suspended' })
      await expect(placeTestHold(before)).rejects.toMatchObject({ code: 'service_unavailable' })
      const now = (await principalOfKey(deps, id, keyId))!
      expect(now.isSuspended).toBe(true)
      await expect(placeTestHold(now)).rejects.toMatchObject({ code: 'organization_suspended' })
      expect(await settleHold(deps, now, held, { ...NONE, inputTokens: 10 }, 'provider')).toMatchObject({ state: 'settled' })

      expect(await suspendOrganization(deps, OPERATOR, { organizationId: id })).toMatchObject({ suspensionReason: 'unpaid' })
      await resumeOrganization(deps, OPERATOR, id)
      await resumeOrganization(deps, OPERATOR, id)
      await expect(placeTestHold(now)).rejects.toMatchObject({ code: 'service_unavailable' })
      await placeTestHold(await principalOfApiKey(deps, key))
    })

    it('limits of an organization override those of its plan, and survive a change of plan', async () => {
      const { id, key } = await createTenant()
      await assignPlan(deps, OPERATOR, { organizationId: id, limits: { vectors: 7, requestsPerMinute: 3, concurrency: null } })
      await assignPlan(deps, OPERATOR, { organizationId: id, plan: 'small' })
      expect(await principalOfApiKey(deps, key)).toMatchObject({
        plan: { code: 'small', vectors: 7, concurrency: 512, storageBytes: 1_000_000 },
        requestsPerMinute: 3,
      })
      await assignPlan(deps, OPERATOR, { organizationId: id, limits: {} })
      expect((await principalOfApiKey(deps, key)).plan).toMatchObject({ vectors: 100, requestsPerMinute: 60 })
      for (const [limits, code] of [
        [{ vectors: -1 }, 'integer_below_min_value'],
        [{ requestsPerMinute: 0 }, 'integer_below_min_value'],
        [{ tokensPerMinute: 0 }, 'integer_below_min_value'],
        [{ concurrency: 0 }, 'integer_below_min_value'],
        [{ storageBytes: 1.5 }, 'unsupported_value'],
        [{ storageBytes: 2 ** 60 }, 'integer_above_max_value'],
      ] as const)
        await expect(assignPlan(deps, OPERATOR, { organizationId: id, limits })).rejects.toMatchObject({ code })
      const { limits } = await assignPlan(deps, OPERATOR, {
        organizationId: id,
        limits: { vectors: 0, storageBytes: 0, requestsPerMinute: 1 },
      })
      expect(limits).toEqual({ vectors: 0, storageBytes: 0, requestsPerMinute: 1 })
      await expect(assignPlan(deps, OPERATOR, { organizationId: id })).rejects.toMatchObject({ code: 'missing_required_parameter' })
    })

    it('records the use of a key by an access token, but not by a subgraph that reads its rules or by a suspended organization', async () => {
      const { id, keyId } = await createTenant()
      const lastUsed = async () => (await deps.collections.apiKeys.findOne({ _id: keyId }))?.lastUsedAt ?? null
      await principalOfKey(deps, id, keyId)
      await suspendOrganization(deps, OPERATOR, { organizationId: id })
      await principalOfKey(deps, null, keyId)
      expect(await lastUsed()).toBeNull()
      await resumeOrganization(deps, OPERATOR, id)
      expect(await principalOfKey(deps, null, keyId)).toMatchObject({ organizationId: id })
      expect(await lastUsed()).toEqual(clock.now())
    })

    it('records every change once, including concurrent changes by operators', async () => {
      const { id } = await createTenant()
      await Promise.all([1, 2, 3].map((vectors) => assignPlan(deps, OPERATOR, { organizationId: id, limits: { vectors } })))
      await suspendOrganization(deps, OPERATOR, { organizationId: id, reason: 'unpaid' })
      await resumeOrganization(deps, OPERATOR, id)
      const { edges } = await listChanges(deps, OPERATOR, await getOrganization(deps, OPERATOR, id), {})
      expect(edges.map(({ node }) => node.kind)).toEqual(['resumed', 'suspended', 'limits', 'limits', 'limits'])
      expect(new Set(edges.slice(2).map(({ node }) => node.limits.vectors))).toEqual(new Set([1, 2, 3]))
      expect(edges[1]!.node).toMatchObject({ apiKeyId: 'key_operator', reason: 'unpaid', plan: 'self-hosted' })
    })

    it('lists organizations by name, status and plan, page by page', async () => {
      const ids: string[] = []
      for (const called of ['Acme East', 'Bank', 'ACME West', 'بنك الشرق']) ids.push((await createTenant(called)).id)
      await suspendOrganization(deps, OPERATOR, { organizationId: ids[2]! })
      await assignPlan(deps, OPERATOR, { organizationId: ids[0]!, plan: 'small' })
      await deleteOrganization(deps, OPERATOR, ids[1]!)
      const list = async (filter: Parameters<typeof listOrganizations>[3], page = {}) =>
        (await listOrganizations(deps, OPERATOR, page, filter)).edges.map(({ node }) => ids.indexOf(node._id))
      expect(await list({})).toEqual([3, 2, 1, 0])
      expect(await list({ name: 'acme' })).toEqual([2, 0])
      expect(await list({ name: 'الشرق' })).toEqual([3])
      expect(await list({ status: 'suspended' })).toEqual([2])
      expect(await list({ status: 'deleting' })).toEqual([1])
      expect(await list({ plan: 'small', status: 'active' })).toEqual([0])
      const { edges, pageInfo } = await listOrganizations(deps, OPERATOR, { first: 1 }, { name: 'acme' })
      expect([edges.length, pageInfo.hasNextPage]).toEqual([1, true])
      expect(await list({ name: 'acme' }, { first: 1, after: pageInfo.endCursor })).toEqual([0])
    })

    it('a deleted organization has no keys and keeps its ledger', async () => {
      const { id, key, keyId } = await createTenant()
      await deleteOrganization(deps, OPERATOR, id)
      await deleteOrganization(deps, OPERATOR, id)
      await expect(principalOfApiKey(deps, key)).rejects.toMatchObject({ code: 'invalid_api_key' })
      expect(await principalOfKey(deps, id, keyId)).toMatchObject({ isEnded: true, isSuspended: true })
      for (const change of [
        () => resumeOrganization(deps, OPERATOR, id),
        () => suspendOrganization(deps, OPERATOR, { organizationId: id }),
        () => assignPlan(deps, OPERATOR, { organizationId: id, plan: 'small' }),
      ])
        await expect(change()).rejects.toMatchObject({ code: 'invalid_request' })

      const round = () => eraseOnce(ownErasure(deps), AbortSignal.timeout(5_000))
      const status = async () => statusOf(await getOrganization(deps, OPERATOR, id))
      const erasure = receiptId(id)
      const toDo = async () => (await listErasuresToDo(deps, 'knowledge')).map((task) => task.id)
      expect(await toDo()).toEqual([erasure])
      expect(await notePartEnded(deps, 'knowledge', erasure, [])).toBe(true)
      expect(await toDo()).toEqual([])
      clock.advance(LATE_WRITES_MS)
      await round()
      expect(await principalOfKey(deps, id, keyId), 'inference still needs it').not.toBeNull()
      expect(await notePartEnded(deps, 'inference', erasure, [])).toBe(true)
      await round()
      expect(await principalOfKey(deps, id, keyId)).toBeNull()
      expect(await status()).toBe('deleting')
      await endErasures(deps, AbortSignal.timeout(5_000))
      expect(await status()).toBe('deleted')
      expect(await getOrganization(deps, OPERATOR, id)).toMatchObject({ name: 'Tenant' })
      expect((await listEntries(deps, id, {})).edges).toHaveLength(1)
    })

    it('a deletion that was interrupted before its erasure began resumes', async () => {
      const { id } = await createTenant()
      const now = clock.now()
      await deps.collections.organizations.findOneAndUpdate({ _id: id }, { $set: { deletedAt: now, erasingSince: now } })
      expect(await listErasuresToDo(deps, 'knowledge')).toEqual([])
      await endErasures(deps, AbortSignal.timeout(5_000))
      expect(await listErasuresToDo(deps, 'knowledge')).toMatchObject([{ id: receiptId(id), organizationId: id, isFound: false }])
    })

    it('the queue skips organizations that the subgraph has erased and another subgraph has not', async () => {
      const { id: first } = await createTenant()
      await deleteOrganization(deps, OPERATOR, first)
      const template = (await deps.collections.erasures.findOne({ _id: receiptId(first) }))!
      await deps.collections.erasures.findOneAndDelete({ _id: template._id })
      const put = (number: number, ...parts: readonly string[]) => {
        const digits = String(number).padStart(32, '0')
        const ended = Object.fromEntries(parts.map((part) => [part, { at: clock.now(), kept: [] }]))
        return { ...template, _id: `ers_${digits}`, organizationId: `org_${digits}`, openSince: clock.now(), ended }
      }
      for (let i = 0; i < 101; i++) await deps.collections.erasures.insertOne(put(i, 'knowledge'))
      clock.advance(1_000)
      const ready = put(101, 'knowledge', 'inference')
      const fresh = put(102)
      for (const one of [ready, fresh]) await deps.collections.erasures.insertOne(one)
      expect((await listErasuresToDo(deps, 'knowledge')).map(({ id }) => id)).toEqual([fresh._id])
      expect(await listErasuresToDo(deps, 'inference')).toHaveLength(100)
      expect((await ownErasureQueue(deps).list(AbortSignal.timeout(5_000)))[0]!.id).toBe(ready._id)
    })

    it('delays the end of a deletion for what earlier calls may still write', async () => {
      const { id } = await createTenant()
      await deleteOrganization(deps, OPERATOR, id)
      const finished: string[] = []
      const erasure: Erasure = {
        queue: {
          list: () => listErasuresToDo(deps, 'knowledge'),
          noteFound: async (one, noted) => void (await noteFound(deps, 'knowledge', one, noted)),
          finish: async ({ organizationId }) => void finished.push(organizationId),
        },
        find: async () => ({ found: { documents: 2 } }),
        erase: async () => ({ isEmpty: true }),
        clock,
        log: deps.log,
      }
      await eraseOnce(erasure, AbortSignal.timeout(5_000))
      expect(finished).toEqual([])
      clock.advance(LATE_WRITES_MS)
      await eraseOnce({ ...erasure, erase: async () => ({ isEmpty: false }) }, AbortSignal.timeout(5_000))
      expect(finished).toEqual([])
      await eraseOnce(erasure, AbortSignal.timeout(5_000))
      expect(finished).toEqual([id])
    })

    it("refuses the operator's own organization, and every caller who is not an operator", async () => {
      const { id, key } = await createTenant()
      const { organizationId } = OPERATOR
      await expect(deleteOrganization(deps, OPERATOR, organizationId)).rejects.toMatchObject({ code: 'in_use' })
      await expect(suspendOrganization(deps, OPERATOR, { organizationId })).rejects.toMatchObject({ code: 'in_use' })
      const admin = await principalOfApiKey(deps, key)
      const another = await createTenant()
      for (const change of [
        deleteOrganization(deps, admin, id),
        resumeOrganization(deps, admin, id),
        suspendOrganization(deps, admin, { organizationId: another.id }),
        assignPlan(deps, admin, { organizationId: id, limits: {} }),
        listOrganizations(deps, admin, {}, {}),
      ])
        await expect(change).rejects.toMatchObject({ code: 'permission_denied' })
      await expect(getOrganization(deps, admin, another.id)).rejects.toMatchObject({ code: 'not_found' })
    })
  })
