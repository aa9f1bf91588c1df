import { toPlain } from '../../../common/plain-text.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { MAX_API_KEYS } from '../../accounts/domain/api-key.ts'
import { type MemberRole, SCOPES_OF } from '../../accounts/domain/member-role.ts'
import { isEnded } from '../../accounts/use-cases/find-principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey, Member, Organization } from '../../use-cases/tables.ts'
import { alignKey, endMemberKey } from './change-member.ts'
import { claimInvitation, findByToken, isGood, unclaimInvitation } from './invitations.ts'
import { membershipsOf } from './members.ts'
import { listAsOwner } from './owners.ts'
import type { Person } from './person.ts'

/** Half of the keys that an organization may have, because each member has one. */
const MAX_MEMBERS = 500
/** Organizations that an issuer may put one person into. */
const MAX_ASSIGNED = 20
/** Longer names and addresses of issuers are cut, or not kept. */
const MAX_NAME_CHARACTERS = 100
const MAX_EMAIL_CHARACTERS = 254

type SignInRefusal = 'not_a_member' | 'invitation_invalid' | 'email_not_verified' | 'organization_suspended' | 'organization_full'

export interface SignInRequest extends Person {
  /** Organizations that the issuer puts the person into. */
  readonly assigned: readonly string[]
  /** The role there, where the person is new. */
  readonly assignedRole: MemberRole
  /** The token of an invitation. */
  readonly invitation: string | null
  /** Where the person wants to go; null: where they were last. */
  readonly organizationId: string | null
}

/**
 * Lets a person in: as a member that they are, by an invitation, or because their issuer puts them into an organization.
 * Who was removed comes back by a new invitation only.
 */
export async function signIn(deps: BillingDeps, request: SignInRequest): Promise<Member | SignInRefusal> {
  const person = tidy(request)
  if (request.invitation !== null) return byInvitation(deps, person, request.invitation)
  const joined = await join(deps, person, request)
  const memberships = await membershipsOf(deps, person)
  const wanted = request.organizationId ?? joined.landing
  const chosen = memberships.filter(({ organization }) => wanted === null || organization._id === wanted)
  for (const { member, organization } of chosen) {
    if (isSuspended(organization)) continue
    const entered = await enter(deps, member, person)
    if (entered) return entered
  }
  if (chosen.some(({ organization }) => isSuspended(organization))) return 'organization_suspended'
  return joined.isFull ? 'organization_full' : 'not_a_member'
}

function tidy<T extends Person>({ name, verifiedEmail, ...rest }: T): T {
  const email = verifiedEmail !== null && verifiedEmail.length <= MAX_EMAIL_CHARACTERS ? verifiedEmail : null
  return { ...rest, name: [...toPlain(name ?? '').trim()].slice(0, MAX_NAME_CHARACTERS).join('') || null, verifiedEmail: email } as T
}

const isSuspended = ({ suspendedAt }: Organization) => suspendedAt != null

/** Makes the person a member where the issuer puts them for the first time. `landing`: the last such organization. */
async function join(deps: BillingDeps, person: Person, { assigned, assignedRole }: SignInRequest) {
  let landing: string | null = null
  let isFull = false
  for (const id of [...new Set(assigned)].slice(0, MAX_ASSIGNED)) {
    const organization = await deps.collections.organizations.findOne({ _id: id })
    if (!organization || organization.deletedAt || isSuspended(organization)) continue
    if (await findRecord(deps, person, id)) continue
    const member = await createMember(deps, person, id, assignedRole)
    if (member) landing = id
    else isFull = true
  }
  return { landing, isFull }
}

async function byInvitation(deps: BillingDeps, person: Person, token: string): Promise<Member | SignInRefusal> {
  const { verifiedEmail } = person
  const invitation = await findByToken(deps, token)
  if (!invitation) return 'invitation_invalid'
  const { organizationId, role } = invitation
  const organization = await deps.collections.organizations.findOne({ _id: organizationId })
  if (!organization || organization.deletedAt) return 'invitation_invalid'
  const record = await findRecord(deps, person, organizationId)
  if (record && !record.removedAt) {
    // Who opens the link again is let in, as they are by now.
    if (isSuspended(organization)) return 'organization_suspended'
    return (await enter(deps, record, person)) ?? 'not_a_member'
  }
  // Made before the person was removed, such as a second link of those days, it is no new one.
  if (record?.removedAt && invitation.createdAt < record.removedAt) return 'invitation_invalid'
  if (verifiedEmail === null) return 'email_not_verified'
  if (!(await isGood(deps, invitation, verifiedEmail))) return 'invitation_invalid'
  if (isSuspended(organization)) return 'organization_suspended'
  if (!(await claimInvitation(deps, invitation))) return 'invitation_invalid'
  try {
    const member = await createMember(deps, person, organizationId, role)
    if (member) return member
  } catch (error) {
    await unclaimInvitation(deps, invitation)
    throw error
  }
  await unclaimInvitation(deps, invitation)
  return 'organization_full'
}

function findRecord({ collections }: BillingDeps, { issuer, subject }: Person, organizationId: string): Promise<Member | null> {
  return collections.members.findOne({ issuer, subject, organizationId })
}

/** Notes that a member is here, with what the issuer says of them now. Null: their key has ended, or they were removed. */
async function enter(deps: BillingDeps, member: Member, { name, verifiedEmail }: Person): Promise<Member | null> {
  const key = await deps.collections.apiKeys.findOne({ _id: member.apiKeyId })
  if (!key || (await isEnded(deps, key))) return null
  const seen = { lastSeenAt: deps.clock.now(), name, email: verifiedEmail }
  const entered = await deps.collections.members.findOneAndUpdate({ _id: member._id, removedAt: null }, { $set: seen })
  // What a crash has left behind of a change of role.
  if (entered) await alignKey(deps, entered)
  return entered
}

/** Makes somebody a member who is none. Null: the organization can have no more. */
async function createMember(deps: BillingDeps, person: Person, organizationId: string, role: MemberRole): Promise<Member | null> {
  const { members, apiKeys } = deps.collections
  if ((await members.countDocuments({ organizationId, removedAt: null }, { limit: MAX_MEMBERS })) >= MAX_MEMBERS) return null
  if ((await apiKeys.countDocuments({ organizationId, revokedAt: null }, { limit: MAX_API_KEYS })) >= MAX_API_KEYS) return null
  const before = await findRecord(deps, person, organizationId)
  // What a crash has left behind of a removal.
  if (before?.removedAt) await endMemberKey(deps, before.apiKeyId)
  const _id = before?._id ?? deps.ids('mem')
  const key = memberKey(deps, { memberId: _id, organizationId, name: person.name ?? person.verifiedEmail ?? 'Member', role })
  await apiKeys.insertOne(key)
  const now = deps.clock.now()
  const { issuer, subject, name, verifiedEmail } = person
  const fields = { email: verifiedEmail, name, role, apiKeyId: key._id, lastSeenAt: now, removedAt: null }
  const created = before
    ? await members.findOneAndUpdate({ _id, apiKeyId: before.apiKeyId }, { $set: fields })
    : await insert(deps, { _id, organizationId, issuer, subject, createdAt: now, ...fields })
  if (!created) {
    // Another sign-in of the same person was faster.
    await apiKeys.findOneAndDelete({ _id: key._id })
    return findRecord(deps, person, organizationId)
  }
  await listAsOwner(deps, created)
  return created
}

async function insert({ collections }: BillingDeps, member: Member): Promise<Member | null> {
  try {
    await collections.members.insertOne(member)
    return member
  } catch (error) {
    if (error instanceof DuplicateKey) return null
    throw error
  }
}

interface NewMemberKey {
  readonly memberId: string
  readonly organizationId: string
  readonly name: string
  readonly role: MemberRole
}

/** A key that nobody can have: its digest is of no text. */
function memberKey({ ids, clock }: BillingDeps, { role, name, ...owner }: NewMemberKey): ApiKey {
  const _id = ids('key')
  return {
    _id,
    ...owner,
    name: name.slice(0, MAX_NAME_CHARACTERS),
    scopes: SCOPES_OF[role],
    modelAllowlist: null,
    digest: `no secret ${_id}`,
    last4: '',
    expiresAt: null,
    revokedAt: null,
    createdAt: clock.now(),
  }
}
