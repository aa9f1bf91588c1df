import { randomBytes } from 'node:crypto'
import { listById } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection, PageArguments } from '../../../common/link/connection.ts'
import { digestKey } from '../../accounts/domain/api-key.ts'
import { type MemberRole, rankOfRole, SCOPES_OF } from '../../accounts/domain/member-role.ts'
import { isEnded } from '../../accounts/use-cases/find-principal.ts'
import { ownKey, requireUnlimited } from '../../accounts/use-cases/manage-api-key.ts'
import { rankOfKey, requireRank } from '../../accounts/use-cases/rank-of-key.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { mayRead } from '../../use-cases/may-read.ts'
import type { ApiKey, Invitation } from '../../use-cases/tables.ts'
import { foldEmail } from './person.ts'

const INVITATION_ID = /^inv_[0-9a-f]{32}$/
/** Long enough for a holiday weekend, short enough that a link in an old mailbox is useless. */
const INVITATION_LIFE_MS = 7 * 86_400_000
/** How long invitations are retained after their end, so that admins see which were not accepted. */
const RETENTION_MS = 30 * 86_400_000
/** More than an organization invites in a week. Each open invitation is a possible way in. */
const MAX_OPEN_INVITATIONS = 100
/** The limit prevents a caller who repeatedly invites and revokes from filling the store. */
const MAX_REVOKED_INVITATIONS = 100
/** Invitations that are read for an address: the open ones, and those that expired in the last 30 days. */
const MAX_LOOKED_AT = 1_000
/** RFC 5321, section 4.5.3.1.3, without the angle brackets. */
const MAX_EMAIL_CHARACTERS = 254
/** The parts before and after the one `@`: no spaces, control characters or characters that hide or reverse text. */
const PART = /^[^\s@<>"(),:;[\]\\\p{C}]+$/u
const PREFIX = 'kis_inv_'
const TOKEN = /^kis_inv_[\w-]{43}$/

interface InviteMemberInput {
  readonly organizationId?: string | null
  readonly email: string
  readonly role: MemberRole
}

/**
 * Invites a person to the caller's organization, or for an operator to any. The token is returned once.
 * @throws {KisError} `permission_denied`: the role may do more than the caller
 * @throws {KisError} `invalid_request`: the email address, or too many open invitations
 */
export async function inviteMember(
  deps: BillingDeps,
  principal: Principal,
  input: InviteMemberInput,
): Promise<{ readonly invitation: Invitation; readonly token: string }> {
  const own = await ownKey(deps, principal)
  const organizationId = input.organizationId ?? principal.organizationId
  const organization = mayRead(principal, organizationId) ? await deps.collections.organizations.findOne({ _id: organizationId }) : null
  if (!organization) throw new NotFound('organization', organizationId, 'organizationId')
  if (organization.deletedAt) throw new KisError('invalid_request', 'The organization is deleted.', { param: 'organizationId' })
  await requireMayInvite(deps, principal, own, input.role)
  const email = checkEmail(input.email)
  const { invitations } = deps.collections
  const now = deps.clock.now()
  const open = { organizationId, acceptedAt: null, revokedAt: null, expiresAt: { $gt: now } }
  if ((await invitations.countDocuments(open, { limit: MAX_OPEN_INVITATIONS })) >= MAX_OPEN_INVITATIONS)
    throw new KisError('invalid_request', `An organization has at most ${MAX_OPEN_INVITATIONS} open invitations. Revoke some.`)
  await invitations.deleteMany({ organizationId, expiresAt: { $lt: new Date(now.getTime() - RETENTION_MS) } })
  await purgeRevoked(deps, organizationId)
  const token = PREFIX + randomBytes(32).toString('base64url')
  const invitation: Invitation = {
    _id: deps.ids('inv'),
    digest: digestKey(token, deps.pepper()),
    organizationId,
    email,
    role: input.role,
    invitedBy: own._id,
    createdAt: now,
    expiresAt: new Date(now.getTime() + INVITATION_LIFE_MS),
    acceptedAt: null,
    revokedAt: null,
  }
  await invitations.insertOne(invitation)
  return { invitation, token }
}

/** Deletes the revoked invitations of an organization except the last ones. */
async function purgeRevoked({ collections: { invitations } }: BillingDeps, organizationId: string): Promise<void> {
  const unaccepted = { organizationId, acceptedAt: null }
  const revoked = { ...unaccepted, revokedAt: { $gt: new Date(0) } }
  const last = await invitations.find(revoked, { sort: { revokedAt: -1 }, limit: MAX_REVOKED_INVITATIONS })
  const oldest = last[MAX_REVOKED_INVITATIONS - 1]?.revokedAt
  if (oldest) await invitations.deleteMany({ ...unaccepted, revokedAt: { $gt: new Date(0), $lt: oldest } })
}

function checkEmail(text: string): string {
  const email = text.trim()
  if (email.length > MAX_EMAIL_CHARACTERS)
    throw new KisError('string_above_max_length', `\`email\` has at most ${MAX_EMAIL_CHARACTERS} characters.`, { param: 'email' })
  const parts = email.split('@')
  const isAddress = parts.length === 2 && parts.every((part) => PART.test(part)) && /[^.]\.[^.]/.test(parts[1]!)
  if (!isAddress) throw new KisError('invalid_value', '`email` is not an e-mail address, such as `name@example.org`.', { param: 'email' })
  return email
}

/**
 * Lists the open invitations of an organization that the caller may read, and those that expired lately, newest first.
 */
export async function listInvitations(
  { collections }: BillingDeps,
  principal: Principal,
  organizationId: string,
  page: PageArguments,
): Promise<Connection<Invitation>> {
  requireScope(principal, 'admin')
  return listById(collections.invitations, { organizationId, acceptedAt: null, revokedAt: null }, page, INVITATION_ID)
}

/** Returns an invitation that the caller may read; null for others. */
export async function findInvitation({ collections }: BillingDeps, principal: Principal, id: string): Promise<Invitation | null> {
  requireScope(principal, 'admin')
  const invitation = await collections.invitations.findOne({ _id: id })
  return invitation && mayRead(principal, invitation.organizationId) ? invitation : null
}

/**
 * Revokes an invitation. Idempotent.
 * @throws {NotFound}
 * @throws {KisError} `in_use`: it was accepted; `permission_denied`: it is for an owner, and the caller is no owner
 */
export async function revokeInvitation(deps: BillingDeps, principal: Principal, id: string): Promise<Invitation> {
  const own = await ownKey(deps, principal)
  const invitation = await findInvitation(deps, principal, id)
  if (!invitation) throw new NotFound('invitation', id, 'id')
  requireRank(await rankOfKey(deps, own), rankOfRole(invitation.role))
  if (invitation.revokedAt) return invitation
  const revoked = await deps.collections.invitations.findOneAndUpdate(
    { _id: id, acceptedAt: null, revokedAt: null },
    { $set: { revokedAt: deps.clock.now() } },
  )
  if (revoked) return revoked
  const now = await deps.collections.invitations.findOne({ _id: id })
  if (now?.revokedAt) return now
  throw new KisError('in_use', 'The invitation was accepted. Remove the member instead.', { param: 'id' })
}

/**
 * Revokes the open invitations of an email address, so that a removed person cannot use one to return with another
 * account.
 */
export async function revokeInvitationsOf({ collections, clock }: BillingDeps, organizationId: string, email: string): Promise<void> {
  const open = { organizationId, acceptedAt: null, revokedAt: null }
  const found = await collections.invitations.find(open, { sort: { _id: -1 }, limit: MAX_LOOKED_AT })
  for (const { _id, email: of } of found)
    if (foldEmail(of) === foldEmail(email))
      await collections.invitations.findOneAndUpdate({ _id, ...open }, { $set: { revokedAt: clock.now() } })
}

/** Returns the invitation with this token, whatever its state. Null: there is none. */
export async function findByToken({ collections, pepper }: BillingDeps, token: string): Promise<Invitation | null> {
  return TOKEN.test(token) ? collections.invitations.findOne({ digest: digestKey(token, pepper()) }) : null
}

/**
 * Returns whether a person with this email address may use the invitation: it is open, it is for the address, and its
 * creator could still create it.
 */
export async function isGood(deps: BillingDeps, invitation: Invitation, email: string): Promise<boolean> {
  const { role, expiresAt, acceptedAt, revokedAt, invitedBy } = invitation
  if (acceptedAt || revokedAt || expiresAt <= deps.clock.now() || foldEmail(invitation.email) !== foldEmail(email)) return false
  const inviter = await deps.collections.apiKeys.findOne({ _id: invitedBy })
  if (!inviter || (await isEnded(deps, inviter))) return false
  return inviter.scopes.some((scope) => scope === 'admin' || scope === 'operator') && mayInvite(deps, inviter, inviter, role)
}

async function mayInvite(
  deps: BillingDeps,
  principal: Pick<Principal, 'scopes' | 'isRun'>,
  own: ApiKey,
  role: MemberRole,
): Promise<boolean> {
  try {
    await requireMayInvite(deps, principal, own, role)
    return true
  } catch (error) {
    if (error instanceof KisError && error.code === 'permission_denied') return false
    throw error
  }
}

async function requireMayInvite(
  deps: BillingDeps,
  principal: Pick<Principal, 'scopes' | 'isRun'>,
  own: ApiKey,
  role: MemberRole,
): Promise<void> {
  requireRank(await rankOfKey(deps, own), rankOfRole(role))
  await requireUnlimited(deps, principal, own, SCOPES_OF[role])
}

/** Uses up an open invitation. False: it was already used, or revoked. */
export async function claimInvitation({ collections, clock }: BillingDeps, { _id }: Invitation): Promise<boolean> {
  const now = clock.now()
  const open = { _id, acceptedAt: null, revokedAt: null, expiresAt: { $gt: now } }
  return (await collections.invitations.findOneAndUpdate(open, { $set: { acceptedAt: now } })) !== null
}

/** Reopens an invitation whose use has failed. */
export async function unclaimInvitation({ collections }: BillingDeps, { _id }: Invitation): Promise<void> {
  await collections.invitations.findOneAndUpdate({ _id }, { $set: { acceptedAt: null } })
}
