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
/** Organizations that an issuer may assign to one person. */
const MAX_ASSIGNED = 20
/** Longer names of issuers are cut, and longer email addresses are not stored. */
const MAX_NAME_CHARACTERS = 100
const MAX_EMAIL_CHARACTERS = 254

type SignInRefusal = 'not_a_member' | 'invitation_invalid' | 'email_not_verified' | 'organization_suspended' | 'organization_full'

/** A person that an issuer has authenticated, and where the person wants to sign in. */
export interface SignInRequest extends Person {
  /** Organizations that the issuer assigns to the person. */
  readonly assigned: readonly string[]
  /** The role in assigned organizations where the person is new. */
  readonly assignedRole: MemberRole
  /** The token of an invitation. */
  readonly invitation: string | null
  /** The organization to sign in to; null: the one of the last sign-in. */
  readonly organizationId: string | null
}

/**
 * Signs a person in: as an existing member, by an invitation, or because their issuer assigns an organization. A
 * removed person can return only by a new invitation.
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

/**
 * Makes the person a member where the issuer assigns them for the first time. `landing`: the last such organization.
 */
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
    // A member who opens the link again is signed in with their current role.
    if (isSuspended(organization)) return 'organization_suspended'
    return (await enter(deps, record, person)) ?? 'not_a_member'
  }
  // An invitation that was created before the person was removed, such as a second link of that time, does not count as
  // new.
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

/**
 * Records that a member has signed in, with the issuer's current data. Null: their key has ended, or they were removed.
 */
async function enter(deps: BillingDeps, member: Member, { name, verifiedEmail }: Person): Promise<Member | null> {
  const key = await deps.collections.apiKeys.findOne({ _id: member.apiKeyId })
  if (!key || (await isEnded(deps, key))) return null
  const seen = { lastSeenAt: deps.clock.now(), name, email: verifiedEmail }
  const entered = await deps.collections.members.findOneAndUpdate({ _id: member._id, removedAt: null }, { $set: seen })
  // Repairs what a crash has left of a change of role.
  if (entered) await alignKey(deps, entered)
  return entered
}

/** Creates a member. Null: the organization can have no more. */
async function createMember(deps: BillingDeps, person: Person, organizationId: string, role: MemberRole): Promise<Member | null> {
  const { members, apiKeys } = deps.collections
  if ((await members.countDocuments({ organizationId, removedAt: null }, { limit: MAX_MEMBERS })) >= MAX_MEMBERS) return null
  if ((await apiKeys.countDocuments({ organizationId, revokedAt: null }, { limit: MAX_API_KEYS })) >= MAX_API_KEYS) return null
  const before = await findRecord(deps, person, organizationId)
  // Repairs what a crash has left of a removal.
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
    // Another sign-in of the same person has created the member.
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

/** Creates a key without a secret: no text has its digest. */
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
