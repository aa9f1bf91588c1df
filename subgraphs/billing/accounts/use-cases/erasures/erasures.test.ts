import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../../test/support/document-stores.ts'
import { eraseOnce, LATE_WRITES_MS } from '../../../../common/erasure/erasing.ts'
import type { Principal } from '../../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../../common/ports/document-store.ts'
import { creditWallet } from '../../../ledger/use-cases/credit-wallet.ts'
import { createPrincipal, ManualClock, openBilling } from '../../../test-support/world.ts'
import type { BillingDeps } from '../../../use-cases/deps.ts'
import { deleteOrganization } from '../change-organization.ts'
import { createApiKey } from '../create-api-key.ts'
import { createOrganization } from '../create-organization.ts'
import { principalOfKey } from '../find-principal.ts'
import { getOrganization } from '../organizations.ts'
import { listErasuresToDo, ownErasure } from './erase-organization.ts'
import {
  endErasures,
  erasedRecords,
  findErasure,
  listErasures,
  MAX_RECEIPTS,
  noteFound,
  notePartEnded,
  receiptId,
  requestErasure,
} from './erasures.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const NEVER = new AbortController().signal
const DOCUMENT = `doc_${'d'.repeat(32)}`

for (const { name, open } of STORES)
  describe(`Erasures on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    let admin: Principal
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
      admin = await newTenant()
    })
    afterEach(() => store[Symbol.asyncDispose]())

    async function newTenant(): Promise<Principal> {
      const { organization, apiKey } = await createOrganization(deps, OPERATOR, { name: 'Tenant' })
      await creditWallet(deps, { kind: 'top_up', organizationId: organization._id, amount: 5_000_000_000n, reference: 'first' })
      return (await principalOfKey(deps, organization._id, apiKey._id))!
    }
    const ids = (tasks: readonly { readonly id: string }[]) => tasks.map(({ id }) => id)

    it('reports a document to inference once knowledge has listed what was unpacked from it, and ends when both have ended', async () => {
      const begun = await requestErasure(deps, admin, { documentId: DOCUMENT })
      const id = begun._id
      expect((await requestErasure(deps, admin, { documentId: DOCUMENT }))._id).toBe(id)
      expect(await listErasuresToDo(deps, 'inference')).toEqual([])
      expect(await listErasuresToDo(deps, 'knowledge')).toMatchObject([{ id, kind: 'document', documentId: DOCUMENT, isFound: false }])
      const found = { found: { documents: 2, files: 0 }, documentIds: [DOCUMENT, 'doc_part'], notes: 'called salaries.txt' }
      expect(await noteFound(deps, 'knowledge', id, found)).toBe(true)
      // After a crash the subgraph finds less than there was.
      expect(await noteFound(deps, 'knowledge', id, { found: { documents: 0 }, documentIds: [DOCUMENT], notes: 'none' })).toBe(true)
      expect(await listErasuresToDo(deps, 'knowledge')).toMatchObject([{ isFound: true, notes: 'called salaries.txt' }])
      expect(await listErasuresToDo(deps, 'inference')).toMatchObject([{ isFound: false, notes: null, documentIds: found.documentIds }])
      await noteFound(deps, 'inference', id, { found: { threads: 1 } })
      expect(await notePartEnded(deps, 'inference', id, [])).toBe(true)
      await endErasures(deps, NEVER)
      expect(await findErasure(deps, admin, id)).toMatchObject({ endedAt: null, kept: [] })
      const shared = { kind: 'files', count: 1, reason: 'Other documents are made of them.' }
      expect(await notePartEnded(deps, 'knowledge', id, [shared])).toBe(true)
      expect(await notePartEnded(deps, 'knowledge', id, [])).toBe(true)
      await endErasures(deps, NEVER)
      const receipt = (await findErasure(deps, admin, id))!
      expect(receipt).toMatchObject({ endedAt: clock.now(), kept: [shared], documentId: DOCUMENT })
      expect(erasedRecords(receipt)).toEqual(
        expect.arrayContaining([
          { kind: 'documents', count: 2 },
          { kind: 'threads', count: 1 },
        ]),
      )
      expect(JSON.stringify(receipt)).not.toContain('salaries')
      expect(await listErasuresToDo(deps, 'knowledge')).toEqual([])
      expect(await noteFound(deps, 'knowledge', id, found)).toBe(false)
      expect((await requestErasure(deps, admin, { documentId: DOCUMENT }))._id).not.toBe(id)
    })

    it("erases a person's data of keys of the own organization, and retains what the ledger has of them", async () => {
      const { apiKey } = await createApiKey(deps, admin, { name: 'Ann' })
      const other = await newTenant()
      const { _id: id } = await requestErasure(deps, admin, { apiKeyIds: [apiKey._id, apiKey._id] })
      expect(await listErasuresToDo(deps, 'inference')).toMatchObject([{ id, kind: 'person', apiKeyIds: [apiKey._id] }])
      for (const part of ['knowledge', 'inference'] as const) await notePartEnded(deps, part, id, [])
      await endErasures(deps, NEVER)
      expect(await findErasure(deps, admin, id)).toMatchObject({ endedAt: clock.now(), kept: [] })
      expect(await findErasure(deps, other, id)).toBeNull()
      expect(await findErasure(deps, OPERATOR, id)).toMatchObject({ _id: id })
      for (const [input, code] of [
        [{ apiKeyIds: [other.apiKeyId] }, 'not_found'],
        [{ memberId: 'mem_none' }, 'not_found'],
        [{ documentId: 'salaries.txt' }, 'invalid_request'],
        [{ apiKeyIds: [] }, 'invalid_request'],
        [{}, 'invalid_request'],
        [{ documentId: DOCUMENT, memberId: 'mem_none' }, 'invalid_request'],
      ] as const)
        await expect(requestErasure(deps, admin, input)).rejects.toMatchObject({ code })
      const reader = { ...admin, scopes: ['billing:read'] as const }
      await expect(requestErasure(deps, reader, { documentId: DOCUMENT })).rejects.toMatchObject({ code: 'permission_denied' })
      await expect(findErasure(deps, reader, id)).rejects.toMatchObject({ code: 'permission_denied' })
    })

    it('finds an erasure behind more than a thousand others that wait for another subgraph', async () => {
      const { erasures } = deps.collections
      const begun = await requestErasure(deps, admin, { documentId: DOCUMENT })
      const erasure = (await erasures.findOne({ _id: begun._id }))!
      const earlier = new Date(clock.now().getTime() - 1_000)
      const ended = { knowledge: { at: earlier, kept: [] } }
      const open = Array.from({ length: 1_010 }, (_, i) => ({ ...erasure, _id: `ers_${i}`, openKey: `${i}`, openSince: earlier, ended }))
      for (const some of [open.slice(0, 1_000), open.slice(1_000)]) await erasures.insertMissing(some)
      expect(ids(await listErasuresToDo(deps, 'knowledge'))).toEqual([begun._id])
      for (const part of ['knowledge', 'inference'] as const) await notePartEnded(deps, part, begun._id, [])
      await endErasures(deps, NEVER)
      expect(await findErasure(deps, admin, begun._id)).toMatchObject({ endedAt: clock.now() })
    })

    it('runs at most 20 erasures at a time in one organization', async () => {
      for (let i = 0; i < 20; i++) await requestErasure(deps, admin, { documentId: `doc_${String(i).padStart(32, '0')}` })
      await expect(requestErasure(deps, admin, { documentId: DOCUMENT })).rejects.toMatchObject({ code: 'invalid_request' })
      await requestErasure(deps, await newTenant(), { documentId: DOCUMENT })
      expect(await listErasuresToDo(deps, 'knowledge')).toHaveLength(21)
    })

    it('retains the newest 10,000 receipts of an organization', async () => {
      const { _id, ...first } = await requestErasure(deps, admin, { documentId: DOCUMENT })
      const { openKey, openOf, openSince, ...ended } = { ...first, endedAt: clock.now() }
      const old = Array.from({ length: MAX_RECEIPTS - 1 }, (_, i) => ({ ...ended, _id: `ers_${String(i).padStart(32, '0')}` }))
      for (let from = 0; from < old.length; from += 1_000) await deps.collections.erasures.insertMissing(old.slice(from, from + 1_000))
      await requestErasure(deps, admin, { documentId: `doc_${'e'.repeat(32)}` })
      expect(await findErasure(deps, admin, old[0]!._id)).toBeNull()
      expect(await findErasure(deps, admin, old[1]!._id)).toMatchObject({ kind: 'document' })
      expect(await findErasure(deps, admin, _id)).toMatchObject({ endedAt: null })
    })

    it('erasing an organization leaves a receipt of what each subgraph had, and of what the ledger retains', async () => {
      const { organizationId } = admin
      await createApiKey(deps, admin, { name: 'Second' })
      const requested = await requestErasure(deps, admin, { documentId: DOCUMENT })
      await deleteOrganization(deps, OPERATOR, organizationId)
      const id = receiptId(organizationId)
      expect(ids(await listErasuresToDo(deps, 'knowledge'))).toEqual([id, requested._id])
      for (const part of ['knowledge', 'inference'] as const) {
        await noteFound(deps, part, id, { found: part === 'knowledge' ? { documents: 7, passages: 90 } : { agents: 0 } })
        await notePartEnded(deps, part, id, [])
      }
      expect(ids(await listErasuresToDo(deps, 'knowledge'))).toEqual([requested._id])
      await endErasures(deps, NEVER)
      expect(await findErasure(deps, OPERATOR, id)).toMatchObject({ endedAt: null })
      clock.advance(LATE_WRITES_MS)
      await eraseOnce(ownErasure(deps), AbortSignal.timeout(5_000))
      await endErasures(deps, NEVER)
      const receipt = (await findErasure(deps, OPERATOR, id))!
      expect(receipt).toMatchObject({ kind: 'organization', requestedBy: OPERATOR.apiKeyId, endedAt: clock.now() })
      expect(erasedRecords(receipt)).toEqual(
        expect.arrayContaining([
          { kind: 'api_keys', count: 2 },
          { kind: 'documents', count: 7 },
          { kind: 'passages', count: 90 },
        ]),
      )
      expect(receipt.kept.map(({ kind, count }) => [kind, count])).toEqual([
        ['organizations', 1],
        ['wallets', 1],
        ['ledger_entries', 1],
      ])
      const organization = await getOrganization(deps, OPERATOR, organizationId)
      const { edges } = await listErasures(deps, OPERATOR, organization, {})
      expect(edges.map(({ node }) => node._id)).toEqual([requested._id, id])
    })
  })
