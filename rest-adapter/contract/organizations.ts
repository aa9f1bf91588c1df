import type { Static } from '@sinclair/typebox'
import { LedgerEntry } from './billing.ts'
import { array, boolean, constant, define, described, integer, nullable, object, oneOf, operation, optional, string } from './build.ts'
import { After, Limit, listOf, OrganizationId, UnixSeconds, Usd } from './shared.ts'

export const ResidencyPolicy = define('ResidencyPolicy').as(
  oneOf(
    ['unrestricted', 'regional', 'local_only'],
    "Which engines may process the organization's data: any, only local and regional ones, or only local ones.",
  ),
)

export const OrganizationName = define('OrganizationName').as(
  string('The display name: 1 to 100 characters.', { minLength: 1, maxLength: 100 }),
)

export const LowBalanceThreshold = define('LowBalanceThreshold').as(
  nullable(
    string(
      'A balance below this amount, in US dollars, is low. The subscription `walletChanged` and the event `wallet.low_balance` ' +
        'report it. Null: no balance is low.',
      { pattern: '^\\d{1,12}(\\.\\d{1,9})?$' },
    ),
  ),
)

export const OrganizationChange = define('OrganizationChange').closed(
  {
    name: optional(OrganizationName),
    residency_policy: optional(ResidencyPolicy),
    low_balance_threshold_usd: optional(LowBalanceThreshold),
  },
  { minProperties: 1 },
)

export const OrganizationCreation = define('OrganizationCreation').closed({
  name: OrganizationName,
  plan: optional(string('The code of a plan.', { minLength: 1, maxLength: 100, default: 'self-hosted' })),
  residency_policy: optional(ResidencyPolicy),
})

export const OrganizationLimits = define('OrganizationLimits').closed('Limits of one organization.', {
  storage_bytes: optional(nullable(integer('The most bytes of files.', { minimum: 0, maximum: 9_007_199_254_740_991 }))),
  vectors: optional(nullable(integer('The most chunk vectors over all collections.', { minimum: 0, maximum: 2_147_483_647 }))),
  max_file_bytes: optional(nullable(integer('The most bytes of one file.', { minimum: 0, maximum: 2_147_483_647 }))),
  requests_per_minute: optional(nullable(integer('The most requests of one key in a minute.', { minimum: 1, maximum: 2_147_483_647 }))),
  tokens_per_minute: optional(nullable(integer('The most tokens of one key in a minute.', { minimum: 1, maximum: 2_147_483_647 }))),
  concurrency: optional(nullable(integer('The most calls of the organization at the same time.', { minimum: 1, maximum: 2_147_483_647 }))),
  ocr_pages: optional(
    nullable(integer('The most pages that OCR reads in a calendar month of UTC.', { minimum: 0, maximum: 2_147_483_647 })),
  ),
})
export type OrganizationLimits = Static<typeof OrganizationLimits>

export const PlanAssignment = define('PlanAssignment').closed(
  {
    plan: optional(string('The code of a plan.', { minLength: 1, maxLength: 100 })),
    limits: optional(
      described(
        OrganizationLimits,
        "Limits in place of the plan's. They replace all that the organization had, and stay when the plan changes. For a limit " +
          "that is null or left out, the plan's applies.",
      ),
    ),
  },
  { minProperties: 1 },
)

export const Suspension = define('Suspension').closed({
  reason: optional(string('Why, for the operators.', { minLength: 1, maxLength: 100 })),
})

export const OrganizationChangeEntry = define('OrganizationChangeEntry').object('A change that an operator made.', {
  id: string('The id: `och_…`.'),
  object: constant('organization.change'),
  created_at: UnixSeconds,
  kind: oneOf(['plan', 'limits', 'plan_and_limits', 'suspended', 'resumed', 'deleted'], 'What the operator did.'),
  plan: string('The code of the plan after the change.'),
  limits: described(OrganizationLimits, "The organization's own limits after the change."),
  reason: nullable(string('Why the operator suspended the organization. Null for other changes, and if the operator stated no reason.')),
  key_id: string("The id of the operator's key."),
})
export type OrganizationChangeEntry = Static<typeof OrganizationChangeEntry>

export const ErasureRequest = define('ErasureRequest').closed(
  'What to erase. Exactly one of the fields.',
  {
    document_id: optional(
      string(
        'The id of a document. It may be deleted already: the service also erases what quotes a deleted document. Its files are ' +
          'deleted unless other documents use them.',
      ),
    ),
    member_id: optional(string("The id of a member. The service erases the conversations of the member's key.")),
    key_ids: optional(array(string(), 'Keys of your organization.', { minItems: 1, maxItems: 100 })),
  },
  { minProperties: 1, maxProperties: 1 },
)

export const ErasedRecords = define('ErasedRecords').object('The number of records of one kind to erase.', {
  kind: string('The kind of the records, such as `documents`, `threads` or `api_keys`.'),
  count: integer('The number of records, counted up to 1,000,000.'),
})

export const KeptRecords = define('KeptRecords').object('The number of records of one kind that stay.', {
  kind: string('The kind of the records, such as `ledger_entries`.'),
  count: integer('The number of records, counted up to 1,000,000.'),
  reason: string('Why they stay.'),
})

export const Erasure = define('Erasure').object(
  'An erasure, which becomes its receipt. It has ids and numbers, and nothing of what was erased.',
  {
    id: string('The id: `ers_…`.'),
    object: constant('erasure'),
    created_at: UnixSeconds,
    kind: oneOf(['organization', 'person', 'document'], 'What is erased.'),
    document_id: nullable(string('The document, once data of it was found in your organization. Null until then, and for other kinds.')),
    member_id: nullable(string('The member. Null for other kinds, or if you named keys.')),
    key_ids: array(string(), 'The keys whose conversations are erased. Empty for other kinds.'),
    requested_by: string('The id of the key that requested it.'),
    ended_at: nullable(integer('When all was erased and nothing more was found, in Unix seconds. Null while it is in progress.')),
    erased: array(ErasedRecords, 'What there was when the erasure began. It is erased once the erasure has ended.'),
    kept: array(KeptRecords, 'The records that stay when it has ended. Empty until then.'),
  },
)
export type Erasure = Static<typeof Erasure>

export const ErasureList = define('ErasureList').as(listOf(Erasure))

export const OrganizationChangeList = define('OrganizationChangeList').as(listOf(OrganizationChangeEntry))

export const QuotaAmount = define('QuotaAmount').object('A used amount and the limit of the plan.', {
  used: integer('The used amount.'),
  limit: nullable(integer('The limit. Null if there is none.')),
})

export const Quota = define('Quota').object('How much of its plan an organization uses.', {
  storage_bytes: QuotaAmount,
  vectors: QuotaAmount,
  ocr_pages: optional(described(QuotaAmount, 'Pages that OCR has read, or is reading, in this calendar month of UTC.')),
})

export const Organization = define('Organization').object(
  'A tenant. It has one wallet, one residency policy, and its own keys, collections and files.',
  {
    id: string('The id: `org_…`.'),
    object: constant('organization'),
    created_at: UnixSeconds,
    name: OrganizationName,
    residency_policy: ResidencyPolicy,
    low_balance_threshold_usd: LowBalanceThreshold,
    status: oneOf(['active', 'suspended', 'deleting', 'deleted'], 'Whether its keys work. `deleting` until its data is erased.'),
    plan: string('The code of its plan.'),
    limits_in_force: described(OrganizationLimits, 'The limits of its plan, or its own in their place. Null: there is no limit.'),
    quota: described(
      nullable(Quota),
      'How much of its plan the organization uses. Null in responses to the operator, except when you get one organization.',
    ),
  },
)
export type Organization = Static<typeof Organization>

export const ManagedOrganization = define('ManagedOrganization').extend([Organization], {
  limits: described(OrganizationLimits, "The limits that it has in place of its plan's. Null: the plan's limit applies."),
  suspended_at: nullable(integer('When it was suspended, in Unix seconds. Null if it is not.')),
  suspension_reason: nullable(string('Why it is suspended. Null if no reason was stated.')),
  deleted_at: nullable(integer('When it was deleted, in Unix seconds. Null if it is not.')),
})
export type ManagedOrganization = Static<typeof ManagedOrganization>

export const Plan = define('Plan').object(
  'A plan, which the operator configures.',
  {
    object: constant('plan'),
    code: string('The code of the plan, which you send as `plan`.'),
    limits: described(OrganizationLimits, 'The limits of the plan. Null: there is no limit.'),
  },
  {
    example: {
      object: 'plan',
      code: 'team',
      limits: {
        storage_bytes: 10_737_418_240,
        vectors: 1_000_000,
        max_file_bytes: 536_870_912,
        requests_per_minute: 600,
        tokens_per_minute: null,
        concurrency: 32,
      },
    },
  },
)

export const PlanList = define('PlanList').as(listOf(Plan))

export const IngestionQueue = define('IngestionQueue').object(
  'The documents of an organization in the ingestion queue. Each number is counted up to 10,000.',
  {
    object: constant('ingestion_queue'),
    organization_id: string('The id of the organization: `org_…`.'),
    due: integer('The number of documents that are due and wait for a free slot.'),
    under_way: integer('The number of documents that are being processed or wait for a retry.'),
    due_since: nullable(integer('Since when the document that waits longest is due, in Unix seconds. Null if none waits for a slot.')),
  },
  { example: { object: 'ingestion_queue', organization_id: 'org_0190', due: 12, under_way: 2, due_since: 1_769_860_800 } },
)

export const IngestionQueueList = define('IngestionQueueList').as(listOf(IngestionQueue))

export const PartHealth = define('PartHealth').object(
  'The health of a part of the service, as it reports it.',
  {
    object: constant('part_health'),
    part: oneOf(['billing', 'inference', 'knowledge'], 'The part.'),
    is_ready: boolean('Whether it can serve.'),
    problems: array(
      string(),
      'What prevents it from serving: each begins with the name of a store or an engine and a colon, or reports that the part does not ' +
        'respond. Empty if it is ready.',
    ),
  },
  { example: { object: 'part_health', part: 'knowledge', is_ready: false, problems: ['elasticsearch: connect ECONNREFUSED'] } },
)

export const HealthList = define('HealthList').as(listOf(PartHealth))

export const OrganizationWithWallet = define('OrganizationWithWallet').extend([ManagedOrganization], {
  wallet: object("The organization's account in US dollars.", {
    balance_usd: string('The credit that has not been charged.'),
    held_usd: string('The amount held for calls in progress.'),
    available_usd: string('The balance minus the held amount. Never below zero.'),
  }),
})

export const OrganizationWithKey = define('OrganizationWithKey').extend([ManagedOrganization], {
  key: string("The secret of the organization's first key, which has the scope `admin`. The service never shows it again."),
})

export const OrganizationList = define('OrganizationList').as(listOf(ManagedOrganization))

export const Reference = define('Reference').as(
  string('Your own id of the payment or correction: 1 to 100 characters.', { minLength: 1, maxLength: 100 }),
)

export const TopUp = define('TopUp').closed({
  amount_usd: described(Usd, 'The amount to add, in US dollars, above zero.'),
  reference: Reference,
})

export const Adjustment = define('Adjustment').closed({
  amount_usd: described(Usd, 'The amount to add, in US dollars. Negative to subtract.'),
  reference: Reference,
})

export const ErasureId = string('The id of the erasure, `ers_…`.')

export const erase = operation('erase', 'POST', '/v1/erasures', {
  tag: 'Account',
  summary: "Erase a document everywhere, or a person's conversations",
  description:
    "Erases one document with its files and all that quotes it, or the runs, threads and stored responses of a person's keys. The " +
    'erasure that it returns becomes the receipt. It continues after a crash, and ends after at least 2 minutes. While an erasure ' +
    'of the same thing is in progress, you get that one. Requires the scope `admin`.',
  body: ErasureRequest,
  responses: { 201: { description: 'The erasure.', json: Erasure } },
})

export const listErasures = operation('listErasures', 'GET', '/v1/erasures', {
  tag: 'Account',
  summary: 'List erasures',
  description: 'Lists the erasures of your organization, newest first. The receipts are never deleted. Requires the scope `admin`.',
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: ErasureList } },
})

export const getErasure = operation('getErasure', 'GET', '/v1/erasures/{id}', {
  tag: 'Account',
  summary: 'Get an erasure',
  description: 'Gets an erasure: its progress, and its receipt once it has ended. Requires the scope `admin`.',
  params: { id: ErasureId },
  responses: { 200: { description: 'The erasure.', json: Erasure } },
})

export const getOrganization = operation('getOrganization', 'GET', '/v1/organization', {
  tag: 'Account',
  summary: 'Get your organization',
  description: 'Gets your organization, with how much of its plan it uses. Every key may read it.',
  responses: { 200: { description: 'The organization.', json: Organization } },
})

export const updateOrganization = operation('updateOrganization', 'PATCH', '/v1/organization', {
  tag: 'Account',
  summary: 'Change your organization',
  description:
    'Changes the name, the residency policy or the low-balance threshold. Fields that you leave out keep their values. ' +
    'Requires the scope `admin`.',
  body: OrganizationChange,
  responses: { 200: { description: 'The organization.', json: Organization } },
})

export const createOrganization = operation('createOrganization', 'POST', '/v1/organizations', {
  tag: 'Operator',
  summary: 'Create an organization',
  description:
    'Creates an organization with an empty wallet and its first key, which has the scope `admin`. `key` is the secret of that ' +
    'key, which the service never shows again. Requires the scope `operator`.',
  body: OrganizationCreation,
  responses: { 201: { description: 'The organization with its first key.', json: OrganizationWithKey } },
})

export const listOrganizations = operation('listOrganizations', 'GET', '/v1/organizations', {
  tag: 'Operator',
  summary: 'List organizations',
  description:
    'Lists all organizations, newest first, also deleted ones. A page that reads 10,000 organizations without filling ends ' +
    'there, with `has_more`; send its `last_id` as `after` to continue. Requires the scope `operator`.',
  query: {
    limit: Limit,
    after: After,
    name: optional(string('Only names that contain this text, in upper or lower case.', { minLength: 1, maxLength: 100 })),
    status: optional(oneOf(['active', 'suspended', 'deleting', 'deleted'], 'Only organizations with this status.')),
    plan: optional(string('Only organizations on the plan with this code.', { minLength: 1, maxLength: 100 })),
  },
  responses: { 200: { description: 'One page of the list.', json: OrganizationList } },
})

export const getOrganizationById = operation('getOrganizationById', 'GET', '/v1/organizations/{id}', {
  tag: 'Operator',
  summary: 'Get an organization',
  description: 'Gets an organization with its wallet and what it stores. Requires the scope `operator`, or `billing:read` for your own.',
  params: { id: OrganizationId },
  responses: { 200: { description: 'The organization.', json: OrganizationWithWallet } },
})

export const deleteOrganization = operation('deleteOrganization', 'DELETE', '/v1/organizations/{id}', {
  tag: 'Operator',
  summary: 'Delete an organization',
  description:
    'Deletes an organization permanently. Every process refuses its keys within 5 seconds. The service then erases its keys, ' +
    'webhooks, files, documents, agents, workflows and runs, which takes at least 2 minutes and continues after a crash. ' +
    '`status` is `deleting` until it is done. Its name, wallet, ledger entries and usage records stay: they are the accounts. ' +
    'Safe to repeat. Fails with `in_use` for your own organization. Requires the scope `operator`.',
  params: { id: OrganizationId },
  responses: { 200: { description: 'The organization.', json: ManagedOrganization } },
})

export const assignPlan = operation('assignPlan', 'PATCH', '/v1/organizations/{id}', {
  tag: 'Operator',
  summary: "Change an organization's plan or limits",
  description:
    'Assigns another plan to an organization, or sets its own limits. Both take effect before the service responds. Requires ' +
    'the scope `operator`.',
  params: { id: OrganizationId },
  body: PlanAssignment,
  responses: { 200: { description: 'The organization.', json: ManagedOrganization } },
})

export const suspendOrganization = operation('suspendOrganization', 'POST', '/v1/organizations/{id}/suspend', {
  tag: 'Operator',
  summary: 'Suspend an organization',
  description:
    'Suspends an organization. From now on no call of it begins, and within 5 seconds every process refuses its keys with ' +
    '`organization_suspended` and ends its streams. Its documents, re-embeddings and web addresses wait until it is resumed. ' +
    'Its runs of agents and workflows fail at their next call. Safe to repeat. Fails with `in_use` for your own organization. ' +
    'Requires the scope `operator`.',
  params: { id: OrganizationId },
  body: Suspension,
  isBodyRequired: false,
  responses: { 200: { description: 'The organization.', json: ManagedOrganization } },
})

export const resumeOrganization = operation('resumeOrganization', 'POST', '/v1/organizations/{id}/resume', {
  tag: 'Operator',
  summary: 'Resume an organization',
  description:
    'Resumes a suspended organization. Its keys work within 5 seconds, and waiting work continues within 5 minutes. Safe to ' +
    'repeat. Requires the scope `operator`.',
  params: { id: OrganizationId },
  responses: { 200: { description: 'The organization.', json: ManagedOrganization } },
})

export const listOrganizationChanges = operation('listOrganizationChanges', 'GET', '/v1/organizations/{id}/changes', {
  tag: 'Operator',
  summary: 'List what operators changed',
  description:
    'Lists the changes of plan, limits and status that operators made, newest first. They are never deleted. Requires the ' +
    'scope `operator`.',
  params: { id: OrganizationId },
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: OrganizationChangeList } },
})

export const listErasuresOfOrganization = operation('listErasuresOfOrganization', 'GET', '/v1/organizations/{id}/erasures', {
  tag: 'Operator',
  summary: "List an organization's erasures",
  description:
    'Lists the erasures of an organization, newest first. That of the organization itself, once it is deleted, is the last ' +
    'one. Requires the scope `operator`, or `admin` for your own.',
  params: { id: OrganizationId },
  query: { limit: Limit, after: After },
  responses: { 200: { description: 'One page of the list.', json: ErasureList } },
})

export const topUpWallet = operation('topUpWallet', 'POST', '/v1/organizations/{id}/top-ups', {
  tag: 'Operator',
  summary: 'Add credit',
  description:
    'Adds credit to a wallet. A request with the same reference returns the same entry and adds nothing. Requires the scope `operator`.',
  params: { id: OrganizationId },
  body: TopUp,
  responses: { 201: { description: 'The ledger entry.', json: LedgerEntry } },
})

export const adjustWallet = operation('adjustWallet', 'POST', '/v1/organizations/{id}/adjustments', {
  tag: 'Operator',
  summary: 'Correct a balance up or down',
  description:
    'Corrects a balance up or down, but not below the amount that is held. A request with the same reference returns the same ' +
    'entry and changes nothing. Requires the scope `operator`.',
  params: { id: OrganizationId },
  body: Adjustment,
  responses: { 201: { description: 'The ledger entry.', json: LedgerEntry } },
})

export const listPlans = operation('listPlans', 'GET', '/v1/plans', {
  tag: 'Operator',
  summary: 'List plans',
  description:
    'Lists the plans that you can assign to an organization, on one page. The operator configures them. Requires the scope `operator`.',
  responses: { 200: { description: 'The plans.', json: PlanList } },
})

export const listIngestionQueues = operation('listIngestionQueues', 'GET', '/v1/ingestion-queues', {
  tag: 'Operator',
  summary: 'List ingestion queues',
  description:
    'Lists the organizations that have documents in the queue of the ingestion, by id, at most 100 on a page. While `has_more` ' +
    'is true, send `last_id` as `after` to continue. Requires the scope `operator`.',
  query: { after: After },
  responses: { 200: { description: 'One page of the list.', json: IngestionQueueList } },
})

export const getHealth = operation('getHealth', 'GET', '/v1/health', {
  tag: 'Operator',
  summary: 'Get the health of the service',
  description:
    'Reports whether each part of the service can serve, and what prevents it. One process of each part responds. ' +
    'A part that does not respond is not ready. Requires the scope `operator`.',
  responses: { 200: { description: 'The parts.', json: HealthList } },
})
