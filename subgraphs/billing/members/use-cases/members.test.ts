import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import type { MemberRole } from '../../accounts/domain/member-role.ts'
import { listApiKeys } from '../../accounts/use-cases/api-keys.ts'
import { deleteOrganization, suspendOrganization } from '../../accounts/use-cases/change-organization.ts'
import { createApiKey } from '../../accounts/use-cases/create-api-key.ts'
import { createOrganization } from '../../accounts/use-cases/create-organization.ts'
import { eraseAccounts } from '../../accounts/use-cases/erasures/erase-organization.ts'
import { principalOfApiKey, principalOfKey } from '../../accounts/use-cases/find-principal.ts'
import { revokeApiKey } from '../../accounts/use-cases/revoke-api-key.ts'
import { rotateApiKey } from '../../accounts/use-cases/rotate-api-key.ts'
import { updateApiKey } from '../../accounts/use-cases/update-api-key.ts'
import { revokeSession } from '../../sessions/use-cases/manage-sessions.ts'
import { openSessionOf } from '../../sessions/use-cases/open-session.ts'
import { createPrincipal, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Member } from '../../use-cases/tables.ts'
import { removeMember, updateMember } from './change-member.ts'
import { inviteMember, listInvitations, revokeInvitation } from './invitations.ts'
import { findMember, listCreatedKeys, listMembers, listMemberships } from './members.ts'
import { type SignInRequest, signIn } from './sign-in.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const ISSUER = 'https://id.example'
const DAY_MS = 86_400_000

for (const { name, open } of STORES)
  describe(`Members on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    let first: Principal
    let organizationId: string
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
      const tenant = await newTenant()
      organizationId = tenant.organizationId
      first = tenant.principal
    })
    afterEach(() => store[Symbol.asyncDispose]())

    async function newTenant() {
      const { organization, apiKey } = await createOrganization(deps, OPERATOR, { name: 'Tenant' })
      return { organizationId: organization._id, principal: (await principalOfKey(deps, organization._id, apiKey._id))! }
    }
    const arrive = (subject: string, request: Partial<SignInRequest> = {}) =>
      signIn(deps, {
        ...{ issuer: ISSUER, subject, verifiedEmail: `${subject}@example.org`, name: subject },
        ...{ assigned: [], assignedRole: 'viewer', invitation: null, organizationId: null, ...request },
      })
    async function join(subject: string, role: MemberRole, by = first): Promise<Member> {
      const { token } = await inviteMember(deps, by, { email: `${subject}@example.org`, role })
      const member = await arrive(subject, { invitation: token })
      if (typeof member === 'string') throw new Error(member)
      return member
    }
    const as = async (member: Member) => (await principalOfKey(deps, member.organizationId, member.apiKeyId))!
    const code = (of: string) => ({ code: of })

    it('accepting an invitation creates a member, whose key has the scopes of the role and no secret', async () => {
      const member = await join('ann', 'editor')
      expect(member).toMatchObject({ organizationId, email: 'ann@example.org', name: 'ann', role: 'editor', removedAt: null })
      expect(await as(member)).toMatchObject({ scopes: ['inference', 'knowledge:read', 'knowledge:write', 'agents'], isEnded: false })
      expect((await listMembers(deps, first, organizationId, {})).edges.map(({ node }) => node._id)).toEqual([member._id])
      expect((await listInvitations(deps, first, organizationId, {})).edges).toEqual([])
      const keys = (await listApiKeys(deps, first, organizationId, {})).edges.map(({ node }) => node._id)
      expect(keys).toEqual([first.apiKeyId])
      await expect(rotateApiKey(deps, first, member.apiKeyId)).rejects.toMatchObject(code('in_use'))
      await expect(revokeApiKey(deps, first, member.apiKeyId)).rejects.toMatchObject(code('in_use'))
      await expect(updateApiKey(deps, first, { id: member.apiKeyId, scopes: ['admin'] })).rejects.toMatchObject(code('in_use'))
      await updateApiKey(deps, first, { id: member.apiKeyId, requestsPerMinute: 5 })
      expect(await as(member)).toMatchObject({ requestsPerMinute: 5 })
    })

    it('an invitation works once, before it expires, and only for the verified address', async () => {
      const invite = (email: string) => inviteMember(deps, first, { email, role: 'viewer' })
      const { token } = await invite('ann@example.org')
      expect(await arrive('eve', { invitation: token })).toBe('invitation_invalid')
      expect(await arrive('ann', { invitation: token, verifiedEmail: null })).toBe('email_not_verified')
      expect(await arrive('ann', { invitation: 'kis_inv_unknown' })).toBe('invitation_invalid')
      expect(await arrive('ann', { invitation: token, verifiedEmail: 'ANN@Example.org' })).toMatchObject({ role: 'viewer' })
      expect(await arrive('ann2', { invitation: token, verifiedEmail: 'ann@example.org' })).toBe('invitation_invalid')
      // A member who opens the link again signs in as that member.
      expect(await arrive('ann', { invitation: token })).toMatchObject({ role: 'viewer' })

      const late = await invite('late@example.org')
      clock.advance(7 * DAY_MS)
      expect(await arrive('late', { invitation: late.token })).toBe('invitation_invalid')
      const revoked = await invite('rev@example.org')
      await revokeInvitation(deps, first, revoked.invitation._id)
      expect((await revokeInvitation(deps, first, revoked.invitation._id)).revokedAt).toEqual(clock.now())
      expect(await arrive('rev', { invitation: revoked.token })).toBe('invitation_invalid')
    })

    it.each([
      { of: 'the Kelvin sign', invited: 'kim@example.org', has: '\u212Aim@example.org' },
      { of: 'a Cyrillic letter', invited: 'ann@example.org', has: '\u0430nn@example.org' },
      { of: 'a letter in full width', invited: 'ann@example.org', has: 'ann@ex\uFF41mple.org' },
      { of: 'a dotless i', invited: 'imi@example.org', has: '\u0131mi@example.org' },
    ])('an address that only looks alike, by $of, is another address', async ({ invited, has }) => {
      const { token } = await inviteMember(deps, first, { email: invited, role: 'viewer' })
      expect(await arrive('eve', { invitation: token, verifiedEmail: has })).toBe('invitation_invalid')
    })

    it.each(['', 'ann', 'ann@example', 'a b@example.org', 'ann@example.org\u202E', `${'a'.repeat(250)}@example.org`, 'a@b@example.org'])(
      'refuses to invite %j',
      async (email) => {
        await expect(inviteMember(deps, first, { email, role: 'viewer' })).rejects.toMatchObject({ param: 'email' })
      },
    )

    it('only owners create, change and remove owners, and nobody grants more than they have', async () => {
      const owner = await join('own', 'owner')
      const admin = await join('adm', 'admin', await as(owner))
      const viewer = await join('vie', 'viewer', await as(admin))
      const byAdmin = await as(admin)
      await expect(inviteMember(deps, byAdmin, { email: 'x@example.org', role: 'owner' })).rejects.toMatchObject(code('permission_denied'))
      await expect(updateMember(deps, byAdmin, { id: admin._id, role: 'owner' })).rejects.toMatchObject(code('permission_denied'))
      await expect(updateMember(deps, byAdmin, { id: owner._id, role: 'viewer' })).rejects.toMatchObject(code('permission_denied'))
      await expect(removeMember(deps, byAdmin, { id: owner._id, revokeCreatedKeys: false })).rejects.toMatchObject(
        code('permission_denied'),
      )
      await expect(updateApiKey(deps, byAdmin, { id: owner.apiKeyId, spendLimit: { amount: 0n, period: 'day' } })).rejects.toMatchObject(
        code('permission_denied'),
      )
      // The organization's first key has the rank of an owner.
      await expect(rotateApiKey(deps, byAdmin, first.apiKeyId)).rejects.toMatchObject(code('permission_denied'))
      const { apiKey } = await createApiKey(deps, await as(owner), { name: 'robot', scopes: ['admin'] })
      const byRobot = (await principalOfKey(deps, organizationId, apiKey._id))!
      await expect(updateMember(deps, byRobot, { id: viewer._id, role: 'owner' })).rejects.toMatchObject(code('permission_denied'))
      await expect(inviteMember(deps, await as(viewer), { email: 'x@example.org', role: 'viewer' })).rejects.toMatchObject(
        code('permission_denied'),
      )
      expect(await updateMember(deps, byAdmin, { id: viewer._id, role: 'billing' })).toMatchObject({ role: 'billing' })
      expect(await as(viewer)).toMatchObject({ scopes: ['billing:read'] })
    })

    it('an admin cannot raise a lower key to the rank of an owner', async () => {
      const { apiKey: robot } = await createApiKey(deps, first, { name: 'robot', scopes: ['inference'] })
      const byAdmin = await as(await join('adm', 'admin'))
      const { key } = await rotateApiKey(deps, byAdmin, robot._id)
      await expect(updateApiKey(deps, byAdmin, { id: robot._id, scopes: ['admin'] })).rejects.toMatchObject(code('permission_denied'))
      expect(await principalOfApiKey(deps, key)).toMatchObject({ scopes: ['inference'] })
      await updateApiKey(deps, byAdmin, { id: robot._id, scopes: ['knowledge:read'] })
      const { apiKey: own } = await createApiKey(deps, byAdmin, { name: 'own', scopes: ['inference'] })
      expect(await updateApiKey(deps, byAdmin, { id: own._id, scopes: ['admin'] })).toMatchObject({ scopes: ['admin'] })
    })

    it('a limited key invites and promotes nobody, because a member would not have the limits', async () => {
      const viewer = await join('vie', 'viewer')
      for (const limits of [
        { modelAllowlist: ['m'] },
        { requestsPerMinute: 5 },
        { expiresAt: new Date(clock.now().getTime() + DAY_MS) },
        { spendLimit: { amount: 1n, period: 'day' } as const },
      ]) {
        const { apiKey } = await createApiKey(deps, first, { name: 'limited', scopes: ['admin'], ...limits })
        const limited = (await principalOfKey(deps, organizationId, apiKey._id))!
        await expect(inviteMember(deps, limited, { email: 'x@example.org', role: 'viewer' })).rejects.toMatchObject(
          code('permission_denied'),
        )
        await expect(updateMember(deps, limited, { id: viewer._id, role: 'admin' })).rejects.toMatchObject(code('permission_denied'))
      }
    })

    it('an invitation ends when the key that created it is limited', async () => {
      for (const [name, limits] of [
        ['list', { modelAllowlist: ['m'] }],
        ['rate', { requestsPerMinute: 5 }],
        ['money', { spendLimit: { amount: 1n, period: 'day' } as const }],
      ] as const) {
        const { apiKey } = await createApiKey(deps, first, { name, scopes: ['admin'] })
        const inviter = (await principalOfKey(deps, organizationId, apiKey._id))!
        const { token } = await inviteMember(deps, inviter, { email: `${name}@example.org`, role: 'admin' })
        await updateApiKey(deps, first, { id: apiKey._id, ...limits })
        expect([name, await arrive(name, { invitation: token })]).toEqual([name, 'invitation_invalid'])
      }
    })

    it('the last owner stays an owner under concurrent changes by anyone', async () => {
      const one = await join('one', 'owner')
      await expect(removeMember(deps, first, { id: one._id, revokeCreatedKeys: false })).rejects.toMatchObject(code('in_use'))
      await expect(updateMember(deps, await as(one), { id: one._id, role: 'admin' })).rejects.toMatchObject(code('in_use'))
      const two = await join('two', 'viewer')
      await updateMember(deps, await as(one), { id: two._id, role: 'owner' })
      const outcomes = await Promise.allSettled([
        updateMember(deps, first, { id: one._id, role: 'viewer' }),
        removeMember(deps, first, { id: two._id, revokeCreatedKeys: false }),
      ])
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      const owners = (await listMembers(deps, first, organizationId, {})).edges.filter(({ node }) => node.role === 'owner')
      expect(owners).toHaveLength(1)
      expect((await deps.collections.organizations.findOne({ _id: organizationId }))?.owners).toEqual([owners[0]!.node._id])
    })

    it('an admin who changes a member while others promote that member to the only owner changes no owner', async () => {
      for (const change of ['update', 'remove'] as const) {
        const admin = await join(`adm-${change}`, 'admin')
        const [one, two] = [await join(`one-${change}`, 'owner'), await join(`two-${change}`, 'viewer')]
        const owners = (await listMembers(deps, first, organizationId, {})).edges.filter(({ node }) => node.role === 'owner')
        const delayedUpdate = delayed(async () => {
          await updateMember(deps, first, { id: two._id, role: 'owner' })
          for (const { node } of owners) await updateMember(deps, first, { id: node._id, role: 'viewer' })
        })
        const byAdmin = await as(admin)
        await expect(
          change === 'update'
            ? updateMember(delayedUpdate, byAdmin, { id: two._id, role: 'editor' })
            : removeMember(delayedUpdate, byAdmin, { id: two._id, revokeCreatedKeys: false }),
        ).rejects.toMatchObject(code('permission_denied'))
        expect(await findMember(deps, first, two._id)).toMatchObject({ role: 'owner', removedAt: null })
        expect(await as(two)).toMatchObject({ scopes: ['admin'], isEnded: false })
        expect((await deps.collections.organizations.findOne({ _id: organizationId }))?.owners).toEqual([two._id])
        expect(await findMember(deps, first, one._id)).toMatchObject({ role: 'viewer' })
      }
    })

    /** Runs `meanwhile` after the first read of the owners, and before any write. */
    function delayed(meanwhile: () => Promise<void>): BillingDeps {
      let isFirst = true
      const organizations = new Proxy(deps.collections.organizations, {
        get(target, name) {
          if (name !== 'findOne') return Reflect.get(target, name, target).bind(target)
          return async (filter: { readonly _id: string }) => {
            const found = await target.findOne(filter)
            if (isFirst) {
              isFirst = false
              await meanwhile()
            }
            return found
          }
        },
      })
      return { ...deps, collections: { ...deps.collections, organizations } }
    }

    it('many concurrent changes of one role leave the key with the scopes of the last', async () => {
      const member = await join('ann', 'viewer')
      const roles = ['editor', 'owner', 'billing', 'admin', 'viewer', 'editor'] as const
      await join('boss', 'owner')
      await Promise.all(roles.map((role) => updateMember(deps, first, { id: member._id, role }).catch(() => undefined)))
      const now = (await findMember(deps, first, member._id))!
      const { scopes } = await as(member)
      expect(scopes).toEqual(
        {
          owner: ['admin'],
          admin: ['admin'],
          editor: ['inference', 'knowledge:read', 'knowledge:write', 'agents'],
          viewer: ['knowledge:read'],
          billing: ['billing:read'],
        }[now.role],
      )
    })

    it('a removed member loses access with their key, their other keys remain, and only a new invitation readmits them', async () => {
      await join('own', 'owner')
      const member = await join('ann', 'admin')
      const { apiKey, key } = await createApiKey(deps, await as(member), { name: 'robot', scopes: ['admin'] })
      const old = await inviteMember(deps, await as(member), { email: 'friend@example.org', role: 'admin' })
      expect((await listCreatedKeys(deps, first, member)).map(({ _id }) => _id)).toEqual([apiKey._id])

      const removed = await removeMember(deps, first, { id: member._id, revokeCreatedKeys: false })
      expect(removed.removedAt).toEqual(clock.now())
      expect(await as(member)).toMatchObject({ isEnded: true })
      expect(await principalOfApiKey(deps, key)).toMatchObject({ isEnded: false })
      expect((await listCreatedKeys(deps, first, removed)).map(({ _id }) => _id)).toEqual([apiKey._id])
      expect(await arrive('ann', { assigned: [organizationId], assignedRole: 'admin' })).toBe('not_a_member')
      // The removed member's invitations are no longer valid.
      expect(await arrive('friend', { invitation: old.token })).toBe('invitation_invalid')

      const back = await join('ann', 'viewer')
      expect(back).toMatchObject({ _id: member._id, role: 'viewer', removedAt: null })
      expect(back.apiKeyId).not.toBe(member.apiKeyId)
      await removeMember(deps, first, { id: member._id, revokeCreatedKeys: false })
      await removeMember(deps, first, { id: member._id, revokeCreatedKeys: true })
      await expect(principalOfApiKey(deps, key)).rejects.toMatchObject(code('invalid_api_key'))
    })

    it('an admin ends no session of an owner, and an owner ends any', async () => {
      const [owner, admin, viewer] = [await join('own', 'owner'), await join('adm', 'admin'), await join('vie', 'viewer')]
      const open = async (member: Member) => openSessionOf(deps, await as(member), { memberId: member._id, userAgent: null })
      const [owners, admins, viewers] = [await open(owner), await open(admin), await open(viewer)]
      await expect(revokeSession(deps, await as(admin), owners.session._id)).rejects.toMatchObject(code('permission_denied'))
      expect(await revokeSession(deps, await as(admin), viewers.session._id)).toEqual(viewers.session)
      expect(await revokeSession(deps, await as(owner), admins.session._id)).toEqual(admins.session)
      expect(await revokeSession(deps, await as(owner), owners.session._id)).toEqual(owners.session)
    })

    it('a removed member cannot return by an older invitation from another account with the same address', async () => {
      const member = await join('ann', 'viewer')
      const [same, other] = [
        await inviteMember(deps, first, { email: 'Ann@example.org', role: 'editor' }),
        await inviteMember(deps, first, { email: 'bob@example.org', role: 'viewer' }),
      ]
      await removeMember(deps, first, { id: member._id, revokeCreatedKeys: false })
      const second = { verifiedEmail: 'ann@example.org' }
      expect(await arrive('ann-2', { ...second, invitation: same.token })).toBe('invitation_invalid')
      expect(await arrive('bob', { invitation: other.token })).toMatchObject({ role: 'viewer' })
      const { token } = await inviteMember(deps, first, { email: 'ann@example.org', role: 'viewer' })
      expect(await arrive('ann-2', { ...second, invitation: token })).toMatchObject({ role: 'viewer' })
    })

    it('an issuer assigns people to existing organizations, with an initial role', async () => {
      const other = await newTenant()
      expect(await arrive('ann', { assigned: ['org_unknown'], assignedRole: 'admin' })).toBe('not_a_member')
      const member = await arrive('ann', { assigned: [organizationId], assignedRole: 'editor' })
      expect(member).toMatchObject({ organizationId, role: 'editor' })
      // The issuer decides who may sign in; after that, the organization decides the role.
      expect(await arrive('ann', { assigned: [organizationId], assignedRole: 'owner' })).toMatchObject({ role: 'editor' })
      expect(await arrive('eve', { organizationId: other.organizationId })).toBe('not_a_member')
      expect(await arrive('ann', { organizationId: other.organizationId })).toBe('not_a_member')
    })

    it('a person of two organizations enters the last one used, and can name the other', async () => {
      const here = await join('ann', 'viewer')
      const other = await newTenant()
      clock.advance(1_000)
      const { token } = await inviteMember(deps, other.principal, { email: 'ann@example.org', role: 'admin' })
      const there = (await arrive('ann', { invitation: token })) as Member
      expect(there.organizationId).toBe(other.organizationId)
      clock.advance(1_000)
      expect(await arrive('ann')).toMatchObject({ organizationId: other.organizationId })
      clock.advance(1_000)
      expect(await arrive('ann', { organizationId })).toMatchObject({ _id: here._id })
      clock.advance(1_000)
      expect(await arrive('ann')).toMatchObject({ organizationId })
      const seen = (await listMemberships(deps, await as(here), here)).map(({ organizationId }) => organizationId)
      expect(seen).toEqual([organizationId, other.organizationId])
      expect(await listMemberships(deps, first, here)).toEqual([])
      expect(await findMember(deps, first, there._id)).toBeNull()
      await expect(removeMember(deps, first, { id: there._id, revokeCreatedKeys: false })).rejects.toMatchObject(code('not_found'))
      await expect(updateMember(deps, first, { id: there._id, role: 'viewer' })).rejects.toMatchObject(code('not_found'))
    })

    it('refuses members of a suspended organization with that reason, and knows none of a deleted one', async () => {
      const member = await join('ann', 'viewer')
      await suspendOrganization(deps, OPERATOR, { organizationId })
      expect(await arrive('ann')).toBe('organization_suspended')
      await deleteOrganization(deps, OPERATOR, organizationId)
      expect(await arrive('ann')).toBe('not_a_member')
      await eraseAccounts(deps, organizationId)
      expect(await deps.collections.members.findOne({ _id: member._id })).toBeNull()
    })

    it('an organization has at most 100 open invitations, and old ones are deleted', async () => {
      for (let i = 0; i < 100; i++) await inviteMember(deps, first, { email: `p${i}@example.org`, role: 'viewer' })
      await expect(inviteMember(deps, first, { email: 'x@example.org', role: 'viewer' })).rejects.toMatchObject(code('invalid_request'))
      clock.advance(38 * DAY_MS)
      await inviteMember(deps, first, { email: 'x@example.org', role: 'viewer' })
      expect((await listInvitations(deps, first, organizationId, { first: 100 })).edges).toHaveLength(1)
    })

    it('retains the last 100 revoked invitations', async () => {
      const created: string[] = []
      for (let i = 0; i < 103; i++) {
        const { invitation } = await inviteMember(deps, first, { email: `p${i}@example.org`, role: 'viewer' })
        clock.advance(1)
        await revokeInvitation(deps, first, invitation._id)
        created.push(invitation._id)
      }
      const open = await inviteMember(deps, first, { email: 'x@example.org', role: 'viewer' })
      const retained = await deps.collections.invitations.find(
        { organizationId, acceptedAt: null },
        { sort: { revokedAt: 1 }, limit: 1_000 },
      )
      expect(retained.map(({ _id }) => _id)).toEqual([open.invitation._id, ...created.slice(3)])
    })

    it('an invitation from before a removal does not readmit the person', async () => {
      const { token } = await inviteMember(deps, first, { email: 'ann@example.org', role: 'admin' })
      const member = await join('ann', 'admin')
      clock.advance(1_000)
      await removeMember(deps, first, { id: member._id, revokeCreatedKeys: true })
      expect(await arrive('ann', { invitation: token })).toBe('invitation_invalid')
      expect(await arrive('ann')).toBe('not_a_member')
    })
  })
