import type { Static } from '@sinclair/typebox'
import {
  array,
  boolean,
  closed,
  constant,
  define,
  described,
  integer,
  nullable,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { After, Deletion, Limit, listOf, UnixSeconds, Usd } from './shared.ts'

export const Scope = define('Scope').as(
  oneOf(
    ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'billing:read', 'admin', 'operator'],
    'What a key may do. `admin` includes every scope but `operator`, within its organization.',
  ),
)
export type Scope = Static<typeof Scope>

export const Scopes = define('Scopes').as(
  array(Scope, 'What the key may do. Default: `inference`, `knowledge:read` and `knowledge:write`.', { minItems: 1, maxItems: 7 }),
)

export const ModelAllowlist = define('ModelAllowlist').as(
  nullable(
    array(
      string(undefined, { minLength: 1, maxLength: 200 }),
      'The models that the key may list and call: at most 200 ids or aliases. Null: every model.',
      { maxItems: 200 },
    ),
  ),
)

export const RequestsPerMinute = define('RequestsPerMinute').as(
  nullable(
    integer("The most inference requests in a minute, at least 1. The lower of this limit and the plan's applies. Null: only the plan's.", {
      minimum: 1,
      maximum: 2_147_483_647,
    }),
  ),
)

export const TokensPerMinute = define('TokensPerMinute').as(
  nullable(
    integer(
      "The most tokens in a minute, input and output together, at least 1. The lower of this limit and the plan's applies. Null: " +
        "only the plan's.",
      { minimum: 1, maximum: 2_147_483_647 },
    ),
  ),
)

export const SpendPeriod = define('SpendPeriod').as(
  oneOf(['day', 'month', 'total'], 'The period of the limit: a day or a month in UTC, or all time.'),
)

export const SpendLimitChange = define('SpendLimitChange').as(
  nullable(
    closed(
      'The most that the key may spend in a period. What the key has spent in the period before counts. Null: only the wallet limits it.',
      { amount_usd: described(Usd, 'The limit: 0 to 9,000,000. 0 refuses every call that has a price.'), period: SpendPeriod },
    ),
  ),
)

export const SpendLimit = define('SpendLimit').as(
  nullable(
    object(
      'The most that the key may spend in a period. A call is refused if the sum of `spent_usd`, `held_usd` and the most that ' +
        'the call may cost is above `amount_usd`. Null: only the wallet limits the key.',
      {
        amount_usd: string('The limit, in US dollars.'),
        period: SpendPeriod,
        spent_usd: string('What the key and its descendants were charged in the current period.'),
        held_usd: string('What the calls in progress of the key and its descendants hold.'),
        resets_at: nullable(integer('When the next period begins, in Unix seconds. Null if the period is `total`.')),
      },
    ),
  ),
)
export type SpendLimit = Static<typeof SpendLimit>

export const ExpiresAt = define('ExpiresAt').as(
  nullable(
    integer('When the key expires, with all keys that descend from it, in Unix seconds. Null: never.', {
      minimum: 0,
      maximum: 253_402_300_799,
    }),
  ),
)

export const KeyCreation = define('KeyCreation').closed({
  name: string('The display name: 1 to 100 characters.', { minLength: 1, maxLength: 100 }),
  scopes: optional(Scopes),
  model_allowlist: optional(ModelAllowlist),
  requests_per_minute: optional(RequestsPerMinute),
  tokens_per_minute: optional(TokensPerMinute),
  spend_limit: optional(SpendLimitChange),
  expires_at: optional(ExpiresAt),
})

export const KeyChange = define('KeyChange').closed(
  {
    name: optional(string('The display name: 1 to 100 characters.', { minLength: 1, maxLength: 100 })),
    scopes: optional(Scopes),
    model_allowlist: optional(ModelAllowlist),
    requests_per_minute: optional(RequestsPerMinute),
    tokens_per_minute: optional(TokensPerMinute),
    spend_limit: optional(SpendLimitChange),
    expires_at: optional(ExpiresAt),
  },
  { minProperties: 1 },
)

export const Key = define('Key').object('An API key.', {
  id: string('The id: `key_…`. It is not the secret.'),
  object: constant('key'),
  created_at: UnixSeconds,
  name: string('The display name.'),
  scopes: Scopes,
  model_allowlist: ModelAllowlist,
  requests_per_minute: RequestsPerMinute,
  tokens_per_minute: TokensPerMinute,
  spend_limit: SpendLimit,
  last4: string('The last four characters of the secret. Empty for the key of a member, which has no secret.'),
  last_used_at: nullable(
    integer(
      'When the key was last used, in Unix seconds and up to 5 minutes earlier than it was. Null if it was not used since the ' +
        'service records it.',
    ),
  ),
  expires_at: ExpiresAt,
  revoked_at: nullable(integer('When the key was revoked, in Unix seconds. Null if it was not.')),
})
export type Key = Static<typeof Key>

export const KeyWithSecret = define('KeyWithSecret').extend([Key], {
  key: string('The secret, which you send as `<API_KEY>`. The service never shows it again.'),
})

export const KeyList = define('KeyList').as(listOf(Key))

export const MemberRole = define('MemberRole').as(
  oneOf(
    ['owner', 'admin', 'editor', 'viewer', 'billing'],
    'What a member may do. `owner`: all that `admin` may do, and changes owners. `admin`: the scope `admin`. `editor`: ' +
      '`inference`, `knowledge:read`, `knowledge:write` and `agents`. `viewer`: `knowledge:read`. `billing`: `billing:read`.',
  ),
)

export const Member = define('Member').object('A person who signs in to your organization.', {
  id: string('The id: `mem_…`.'),
  object: constant('member'),
  created_at: UnixSeconds,
  role: MemberRole,
  email: nullable(
    string('The e-mail address, as the identity provider verified it at the last sign-in. Null if the provider verified none.'),
  ),
  name: nullable(string('The name, as the identity provider stated it at the last sign-in. Null if the provider stated none.')),
  key_id: nullable(string("The id of the key that the member acts by. It has no secret. Its usage is the member's.")),
  last_seen_at: UnixSeconds,
  removed_at: nullable(integer('When the member was removed, in Unix seconds. Null if they were not.')),
})
export type Member = Static<typeof Member>

export const Membership = define('Membership').object('An organization that a person is a member of.', {
  organization_id: string('The id of the organization. Sign in again with it to switch to it.'),
  organization_name: string('The display name of the organization.'),
  role: MemberRole,
  last_seen_at: integer('When the person last signed in there, in Unix seconds.'),
})
export type Membership = Static<typeof Membership>

export const MemberWithMemberships = define('MemberWithMemberships').extend([Member], {
  memberships: array(Membership, 'The organizations that the person is a member of, the one of the last sign-in first.', { maxItems: 100 }),
})

export const OwnKey = define('OwnKey').extend(
  [Key],
  {
    organization_id: string('The id of the organization that owns the key: `org_…`.'),
    member: described(nullable(MemberWithMemberships), 'The member whose key this is. Null for a key with a secret.'),
  },
  {
    example: {
      id: 'key_0190',
      object: 'key',
      created_at: 1_769_860_800,
      name: 'website',
      scopes: ['inference', 'knowledge:read'],
      model_allowlist: ['gpt-4o-mini'],
      requests_per_minute: 60,
      tokens_per_minute: null,
      spend_limit: null,
      last4: '8kQz',
      last_used_at: 1_769_864_400,
      expires_at: null,
      revoked_at: null,
      organization_id: 'org_0190',
      member: null,
    },
  },
)

export const MemberList = define('MemberList').as(listOf(Member))

export const MemberChange = define('MemberChange').closed({ role: MemberRole })

export const CreatedKeyIds = define('CreatedKeyIds').as(
  array(string(), 'The keys that the member created and that still work, with those that descend from them, newest first.', {
    maxItems: 100,
  }),
)

export const MemberWithKeys = define('MemberWithKeys').extend([Member], { created_key_ids: CreatedKeyIds })

export const MemberRemoval = define('MemberRemoval').extend([Deletion], { created_key_ids: CreatedKeyIds })

export const InvitationCreation = define('InvitationCreation').closed({
  email: string('The e-mail address that the person must sign in with.', { maxLength: 254 }),
  role: MemberRole,
  organization_id: optional(string('The organization. Leave it out for your own. Operators may name any.')),
})

export const Invitation = define('Invitation').object('An invitation of a person to your organization.', {
  id: string('The id: `inv_…`. It is not the token of the link.'),
  object: constant('invitation'),
  created_at: UnixSeconds,
  email: string('The e-mail address that the person must sign in with.'),
  role: MemberRole,
  invited_by_key_id: nullable(string('The id of the key that invited the person. Null if it no longer exists.')),
  expires_at: UnixSeconds,
  accepted_at: nullable(integer('When it was accepted, in Unix seconds. Null if it was not.')),
  revoked_at: nullable(integer('When it was revoked, in Unix seconds. Null if it was not.')),
})
export type Invitation = Static<typeof Invitation>

export const InvitationWithToken = define('InvitationWithToken').extend([Invitation], {
  token: string('The token of the link. The service never shows it again.'),
  link: nullable(string('The link to pass on. Null if the operator has not configured the public URL of the service.')),
})

export const InvitationList = define('InvitationList').as(listOf(Invitation))

export const Session = define('Session').object('A browser that is signed in to the portal. It may do what its key may do.', {
  id: string('The id: `ses_…`. It is not the secret.'),
  object: constant('session'),
  created_at: UnixSeconds,
  key_id: nullable(string('The id of the key that the session stands for. Null if you may not see it.')),
  user_agent: nullable(string('The `User-Agent` of the browser at the sign-in: at most 300 characters. Null if it sent none.')),
  is_current: boolean('Whether this is the session of your request.'),
  last_used_at: integer('When the session was last used, in Unix seconds and up to 5 minutes earlier than it was.'),
  expires_at: integer('When the session ends, in Unix seconds.'),
})
export type Session = Static<typeof Session>

export const SessionList = define('SessionList').as(listOf(Session))

export const KeyId = string('The id of the key, `key_…`. It is not the secret.')
export const SessionId = string('The id of the session, `ses_…`. It is not the secret.')
export const MemberId = string('The id of the member, `mem_…`.')
export const InvitationId = string('The id of the invitation, `inv_…`. It is not the token of the link.')

export const getOwnKey = operation('getOwnKey', 'GET', '/v1/key', {
  tag: 'Account',
  summary: 'Get your own key',
  description:
    'Gets the key that you send: what it may do, its limits and its organization. In a browser that is signed in, it is the ' +
    'key of the member, with the organizations that this person is a member of. Every key may read it.',
  responses: { 200: { description: 'The key.', json: OwnKey } },
})

export const createKey = operation('createKey', 'POST', '/v1/keys', {
  tag: 'Account',
  summary: 'Create an API key',
  description:
    'Creates a key of your organization. `key` is the secret, which the service never shows again. The new key descends from ' +
    'your key: what it spends counts in the spend limits of all keys that it descends from (at most 8), and it ends when one ' +
    'of them ends. Fields that you leave out get the values of your key; the scopes have their own default. The new key cannot ' +
    "grant more than your key has. Only an operator's key may grant the scope `operator`. Requires the scope `admin`.",
  body: KeyCreation,
  responses: { 201: { description: 'The key with its secret.', json: KeyWithSecret } },
})

export const listKeys = operation('listKeys', 'GET', '/v1/keys', {
  tag: 'Account',
  summary: 'List API keys',
  description: 'Lists the keys of your organization, newest first. Requires the scope `admin`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: KeyList } },
})

export const getKey = operation('getKey', 'GET', '/v1/keys/{id}', {
  tag: 'Account',
  summary: 'Get an API key',
  description: 'Gets a key, without its secret. Requires the scope `admin`.',
  params: { id: KeyId },
  responses: { 200: { description: 'The key.', json: Key } },
})

export const updateKey = operation('updateKey', 'PATCH', '/v1/keys/{id}', {
  tag: 'Account',
  summary: "Change a key's name, scopes, allowlist, limits or expiry",
  description: 'Changes a key. Fields that you leave out keep their values. Requires the scope `admin`.',
  params: { id: KeyId },
  body: KeyChange,
  responses: { 200: { description: 'The key.', json: Key } },
})

export const revokeKey = operation('revokeKey', 'DELETE', '/v1/keys/{id}', {
  tag: 'Account',
  summary: 'Revoke a key',
  description:
    'Revokes a key for good, with all keys that descend from it. All processes refuse them within 5 seconds. Safe to repeat. ' +
    'Fails with `in_use` for your own key and for keys that it descends from. Requires the scope `admin`.',
  params: { id: KeyId },
  responses: { 200: { description: 'The key was revoked.', json: Deletion } },
})

export const rotateKey = operation('rotateKey', 'POST', '/v1/keys/{id}/rotate', {
  tag: 'Account',
  summary: 'Issue a new secret for a key',
  description:
    'Issues a new secret for a key. `key` is the secret, which the service never shows again. All processes refuse the old secret ' +
    'within 5 seconds. Keys that descend from this key stay. Takes no body. Requires the scope `admin`.',
  params: { id: KeyId },
  responses: { 200: { description: 'The key with its new secret.', json: KeyWithSecret } },
})

export const listSessions = operation('listSessions', 'GET', '/v1/sessions', {
  tag: 'Account',
  summary: 'List sessions of browsers',
  description:
    'Lists the browsers that are signed in to the portal with your key, newest first. With the scope `admin`: the sessions of ' +
    'your organization. A session that has ended leaves the list within a minute.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: SessionList } },
})

export const revokeSession = operation('revokeSession', 'DELETE', '/v1/sessions/{id}', {
  tag: 'Account',
  summary: 'End a session of a browser',
  description:
    'Ends a session. Everything of it ends within 5 seconds, and the browser has to sign in again. You can end the sessions of ' +
    'your key, and with the scope `admin` those of your organization.',
  params: { id: SessionId },
  responses: { 200: { description: 'The session was ended.', json: Deletion } },
})

export const listMembers = operation('listMembers', 'GET', '/v1/members', {
  tag: 'Account',
  summary: 'List members',
  description: 'Lists the people who sign in to your organization, newest first. Requires the scope `admin`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: MemberList } },
})

export const getMember = operation('getMember', 'GET', '/v1/members/{id}', {
  tag: 'Account',
  summary: 'Get a member',
  description: 'Gets a member of your organization. Requires the scope `admin`.',
  params: { id: MemberId },
  responses: { 200: { description: 'The member.', json: Member } },
})

export const updateMember = operation('updateMember', 'PATCH', '/v1/members/{id}', {
  tag: 'Account',
  summary: "Change a member's role",
  description:
    'Changes the role of a member. The scopes of their key follow, in all processes within 5 seconds. Keys that they created ' +
    'keep their scopes: `created_key_ids` lists them. Only owners change owners and appoint owners. Fails with `in_use` if no ' +
    'owner would be left. Requires the scope `admin`.',
  params: { id: MemberId },
  body: MemberChange,
  responses: { 200: { description: 'The member, with the keys that they created.', json: MemberWithKeys } },
})

export const removeMember = operation('removeMember', 'DELETE', '/v1/members/{id}', {
  tag: 'Account',
  summary: 'Remove a member',
  description:
    'Removes a member. Their key and their sessions end, in all processes within 5 seconds, and only a new invitation lets ' +
    'them in again. Keys that they created belong to the organization and keep working: `created_key_ids` lists them. Safe to ' +
    'repeat. Only owners remove owners. Fails with `in_use` if no owner would be left. Requires the scope `admin`.',
  params: { id: MemberId },
  query: { revoke_created_keys: optional(boolean('With `true`, the keys that the member created are revoked, too.', { default: false })) },
  responses: { 200: { description: 'The member was removed.', json: MemberRemoval } },
})

export const createInvitation = operation('createInvitation', 'POST', '/v1/invitations', {
  tag: 'Account',
  summary: 'Invite a person',
  description:
    'Invites a person by their e-mail address. The result has the link, which is shown only once. Pass the link on yourself, ' +
    'because the service sends no mail. A person who opens it and signs in with this verified address becomes a member with ' +
    'the role. The invitation expires after 7 days. An organization has at most 100 that are open. Fails with ' +
    '`permission_denied` if the role may do more than you, or your key has limits that a member would not have. Only owners ' +
    'invite owners. Requires the scope `admin`.',
  body: InvitationCreation,
  responses: { 201: { description: 'The invitation with its token.', json: InvitationWithToken } },
})

export const listInvitations = operation('listInvitations', 'GET', '/v1/invitations', {
  tag: 'Account',
  summary: 'List invitations',
  description:
    'Lists the invitations that nobody has accepted and nobody has revoked, newest first. Expired invitations are listed for ' +
    '30 more days. Requires the scope `admin`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: InvitationList } },
})

export const revokeInvitation = operation('revokeInvitation', 'DELETE', '/v1/invitations/{id}', {
  tag: 'Account',
  summary: 'Revoke an invitation',
  description: 'Revokes an invitation and its link. Safe to repeat. Fails with `in_use` if it was accepted. Requires the scope `admin`.',
  params: { id: InvitationId },
  responses: { 200: { description: 'The invitation was revoked.', json: Deletion } },
})
