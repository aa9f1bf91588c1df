import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import { KisError } from '../../../common/errors.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { deleteOrganization, resumeOrganization, suspendOrganization } from '../../accounts/use-cases/change-organization.ts'
import { createApiKey } from '../../accounts/use-cases/create-api-key.ts'
import { createOrganization } from '../../accounts/use-cases/create-organization.ts'
import { eraseAccounts } from '../../accounts/use-cases/erasures/erase-organization.ts'
import { principalOfApiKey } from '../../accounts/use-cases/find-principal.ts'
import { revokeApiKey } from '../../accounts/use-cases/revoke-api-key.ts'
import { rotateApiKey } from '../../accounts/use-cases/rotate-api-key.ts'
import { updateApiKey } from '../../accounts/use-cases/update-api-key.ts'
import { createPrincipal, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { findOwnSession, listSessions, revokeSession, sweepSessions } from './manage-sessions.ts'
import { MAX_SESSIONS_OF_KEY, openSession, openSessionOf, SESSION_MS } from './open-session.ts'
import { endSession, principalOfSession } from './use-session.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const ENDED = { code: 'invalid_api_key', message: 'You are not signed in, or your session has ended. Sign in again.' }

for (const { name, open } of STORES)
  describe(`Sessions on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
    })
    afterEach(() => store[Symbol.asyncDispose]())

    /** Creates an organization with an admin's key and a narrower key. */
    async function createTenant() {
      const { organization, key } = await createOrganization(deps, OPERATOR, { name: 'Tenant' })
      const admin = await principalOfApiKey(deps, key)
      const created = await createApiKey(deps, admin, { name: 'reader', scopes: ['knowledge:read'] })
      return { id: organization._id, key, admin, reader: created.key, readerId: created.apiKey._id }
    }
    const ids = async (of: Parameters<typeof listSessions>[1]) =>
      (await listSessions(deps, of, { first: 100 })).edges.map(({ node }) => node._id)

    it('reflect the current rules of their key, and survive a restart', async () => {
      const { admin, reader, readerId } = await createTenant()
      const { session, token } = await openSession(deps, reader, 'Browser'.repeat(100))
      expect(session).toMatchObject({ apiKeyId: readerId, memberId: null, expiresAt: new Date(clock.now().getTime() + SESSION_MS) })
      expect(session.userAgent).toHaveLength(300)
      expect(JSON.stringify(await deps.collections.sessions.findOne({ _id: session._id }))).not.toContain(token.slice(12))
      expect(await principalOfSession(deps, token)).toEqual({ ...(await principalOfApiKey(deps, reader)), sessionId: session._id })

      deps = openBilling(store, clock)
      await updateApiKey(deps, admin, { id: readerId, scopes: ['knowledge:read', 'inference'] })
      const now = await principalOfSession(deps, token)
      expect(now.scopes).toEqual(['knowledge:read', 'inference'])
      expect((await findOwnSession(deps, now))?._id).toBe(session._id)
      expect(await findOwnSession(deps, admin)).toBeNull()
    })

    it('are not opened with a wrong key', async () => {
      const { admin, reader, readerId } = await createTenant()
      await revokeApiKey(deps, admin, readerId)
      for (const wrong of ['', 'kis_live_x', reader])
        await expect(openSession(deps, wrong, null)).rejects.toMatchObject({ code: 'invalid_api_key' })
      for (const wrong of ['', reader, `kis_session_${'A'.repeat(43)}`])
        await expect(principalOfSession(deps, wrong)).rejects.toMatchObject(ENDED)
    })

    it('end after 12 hours, and are then deleted', async () => {
      const { admin, reader } = await createTenant()
      const { token } = await openSession(deps, reader, null)
      clock.advance(SESSION_MS - 1)
      expect((await principalOfSession(deps, token)).sessionId).toBeDefined()
      await sweepSessions(deps)
      expect(await ids(admin)).toHaveLength(1)
      clock.advance(1)
      await expect(principalOfSession(deps, token)).rejects.toMatchObject(ENDED)
      await sweepSessions(deps)
      expect(await ids(admin)).toEqual([])
    })

    it('end with their key when it is revoked, rotated or expires, or when its parent expires', async () => {
      for (const end of [
        async (tenant: Awaited<ReturnType<typeof createTenant>>) => void (await revokeApiKey(deps, tenant.admin, tenant.readerId)),
        async (tenant: Awaited<ReturnType<typeof createTenant>>) => void (await rotateApiKey(deps, tenant.admin, tenant.readerId)),
      ]) {
        const tenant = await createTenant()
        const { token } = await openSession(deps, tenant.reader, null)
        await end(tenant)
        await expect(principalOfSession(deps, token)).rejects.toMatchObject(ENDED)
        expect(await ids(tenant.admin)).toEqual([])
      }
      const { admin, reader, readerId } = await createTenant()
      const { token } = await openSession(deps, reader, null)
      await updateApiKey(deps, admin, { id: readerId, expiresAt: new Date(clock.now().getTime() + 60_000) })
      clock.advance(60_000)
      await expect(principalOfSession(deps, token)).rejects.toMatchObject(ENDED)
    })

    it('end with the ancestor of their key', async () => {
      const { admin } = await createTenant()
      const parent = await createApiKey(deps, admin, { name: 'parent', scopes: ['admin'] })
      const child = await createApiKey(deps, await principalOfApiKey(deps, parent.key), { name: 'child' })
      const { token } = await openSession(deps, child.key, null)
      await revokeApiKey(deps, admin, parent.apiKey._id)
      await expect(principalOfSession(deps, token)).rejects.toMatchObject(ENDED)
      expect(await ids(admin)).toEqual([])
    })

    it('pause while their organization is suspended, and end with it', async () => {
      const { id, key, admin } = await createTenant()
      const { token } = await openSession(deps, key, null)
      await suspendOrganization(deps, OPERATOR, { organizationId: id })
      await expect(principalOfSession(deps, token)).rejects.toMatchObject({ code: 'organization_suspended' })
      await resumeOrganization(deps, OPERATOR, id)
      expect((await principalOfSession(deps, token)).organizationId).toBe(id)
      await deleteOrganization(deps, OPERATOR, id)
      await expect(principalOfSession(deps, token)).rejects.toMatchObject(ENDED)
      await eraseAccounts(deps, id)
      expect(await ids(admin)).toEqual([])
    })

    it('are listed and ended by their own key, and by an admin of the organization', async () => {
      const [ours, theirs] = [await createTenant(), await createTenant()]
      const reader = await principalOfApiKey(deps, ours.reader)
      const mine = await openSession(deps, ours.reader, null)
      const admins = await openSession(deps, ours.key, null)
      const otherSession = await openSession(deps, theirs.key, null)
      expect(await ids(reader)).toEqual([mine.session._id])
      expect(await ids(ours.admin)).toEqual([admins.session._id, mine.session._id])
      for (const { session } of [admins, otherSession])
        await expect(revokeSession(deps, reader, session._id)).rejects.toBeInstanceOf(KisError)
      await expect(revokeSession(deps, ours.admin, otherSession.session._id)).rejects.toMatchObject({ code: 'not_found' })
      expect((await revokeSession(deps, ours.admin, mine.session._id))._id).toBe(mine.session._id)
      await expect(principalOfSession(deps, mine.token)).rejects.toMatchObject(ENDED)
      expect(await endSession(deps, admins.token)).toBe(true)
      expect(await endSession(deps, admins.token)).toBe(false)
      await expect(principalOfSession(deps, admins.token)).rejects.toMatchObject(ENDED)
      expect((await principalOfSession(deps, otherSession.token)).organizationId).toBe(theirs.id)
    })

    it('are limited to 50 per key, and the oldest ends', async () => {
      const { admin, reader } = await createTenant()
      const who = await principalOfApiKey(deps, reader)
      const first = await openSessionOf(deps, who, { memberId: null, userAgent: null })
      const others = []
      for (let i = 0; i < MAX_SESSIONS_OF_KEY; i++) others.push(await openSessionOf(deps, who, { memberId: null, userAgent: null }))
      await expect(principalOfSession(deps, first.token)).rejects.toMatchObject(ENDED)
      expect(await ids(admin)).toEqual(others.map(({ session }) => session._id).toReversed())
    })

    it('record their use, and that of their key, every 5 minutes', async () => {
      const { reader, readerId } = await createTenant()
      const { session, token } = await openSession(deps, reader, null)
      const lastUsed = async () => [
        (await deps.collections.sessions.findOne({ _id: session._id }))?.lastUsedAt,
        (await deps.collections.apiKeys.findOne({ _id: readerId }))?.lastUsedAt,
      ]
      const before = clock.now()
      clock.advance(299_999)
      await principalOfSession(deps, token)
      expect(await lastUsed()).toEqual([before, before])
      clock.advance(1)
      await principalOfSession(deps, token)
      expect(await lastUsed()).toEqual([clock.now(), clock.now()])
    })
  })
