import { LABELS } from '../../common/identity/earlier-rotation.ts'
import type { Plan, ResidencyPolicy, Scope } from '../../common/identity/principal.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, IndexSpec } from '../../common/ports/document-store.ts'
import { TASK_LEASES, type TaskLease } from '../../common/process/tasks.ts'
import type { MemberRole } from '../accounts/domain/member-role.ts'
import type { LedgerEntry } from '../ledger/domain/ledger.ts'
import type { UsageRecord } from '../ledger/domain/usage.ts'
import type { UsageTotal } from '../ledger/domain/usage-total.ts'
import type { Wallet } from '../ledger/domain/wallet.ts'
import type { WebhookDelivery, WebhookEndpoint, WebhookEventRecord, WebhookFeedRecord, WebhookLane } from '../webhooks/domain/records.ts'

/** The limits that an operator may set for one organization. */
type PlanLimits = Omit<Plan, 'code' | 'ocrPagePrice'>

/** A tenant. */
export type Organization = {
  readonly _id: string
  readonly name: string
  readonly residencyPolicy: ResidencyPolicy
  /** Code of the organization's plan. */
  readonly plan: string
  /** Nano-USD; null or absent: no balance counts as low. */
  readonly lowBalanceThreshold?: number | null
  /** Grows with each change of the rules: the policy, the plan, or the permissions of a key. Absent: 0. */
  readonly revision?: number
  /** Limits in place of the plan's. Absent: none. */
  readonly limits?: OrganizationLimits
  /** Null or absent: the organization is not suspended. */
  readonly suspendedAt?: Date | null
  readonly suspensionReason?: string | null
  /** Set when the organization is deleted, for good. */
  readonly deletedAt?: Date
  /** Equals `deletedAt` until all data of the organization is erased. */
  readonly erasingSince?: Date
  /**
   * Members that are owners, of which one must stay. Each member in the list is an owner; an owner may be missing from
   * it for a moment. Absent: none.
   */
  readonly owners?: readonly string[]
  /** Grows with each change of `owners`. Absent: 0. */
  readonly ownersRevision?: number
  /** The last change by an operator. It is copied to the stored changes before the next one. */
  readonly lastChange?: OrganizationChange
  /** The archive from which the organization was imported. Absent: none. */
  readonly import?: OrganizationImport
  readonly createdAt: Date
}

/** An import. Until it is done, the organization is suspended. */
export type OrganizationImport = {
  /** `exp_…`, the id of the archive. */
  readonly archive: string
  /** The secret of the import's admin key is derived from this nonce. */
  readonly nonce: string
  readonly apiKeyId: string
  readonly isDone: boolean
  /** The organization's state after the end of the import. */
  readonly suspendedAt: Date | null
  readonly suspensionReason: string | null
}

/** Absent: the plan's limit applies. */
export type OrganizationLimits = { readonly [Limit in keyof PlanLimits]?: number }

/** A change by an operator. Plan and limits are those after the change. */
export type OrganizationChange = {
  /** `och_…` */
  readonly _id: string
  readonly organizationId: string
  readonly kind: 'plan' | 'limits' | 'plan_and_limits' | 'suspended' | 'resumed' | 'deleted'
  readonly plan: string
  readonly limits: OrganizationLimits
  readonly reason: string | null
  readonly apiKeyId: string
  readonly at: Date
}

/** A key of an organization. */
export type ApiKey = {
  readonly _id: string
  readonly organizationId: string
  readonly name: string
  /** The key's ancestors, its direct parent last. The key is valid only while all of them are. Absent: none. */
  readonly ancestors?: readonly string[]
  readonly scopes: readonly Scope[]
  /** Ids of models; null: every model. */
  readonly modelAllowlist: readonly string[] | null
  /** Stricter than the plan's limit; null or absent: only the plan's limit applies. */
  readonly requestsPerMinute?: number | null
  readonly tokensPerMinute?: number | null
  /** The person who acts by this key. It has no secret. Absent: the holder of the secret acts by it. */
  readonly memberId?: string
  /** True: the key has ended without its descendants, the keys that a removed member created. */
  readonly leavesDescendants?: boolean
  /** HMAC-SHA-256 of the key. For the key of a member, a text that is no digest. */
  readonly digest: string
  readonly last4: string
  /** How often the secret was replaced. Absent: never. */
  readonly rotations?: number
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  readonly createdAt: Date
  /** When the key was last used, to `USE_RECORDED_EVERY_MS`. Absent: not since uses are recorded. */
  readonly lastUsedAt?: Date
  /** True until the key of the first start is used. Until then each start shows it again. */
  readonly unseen?: boolean
}

/**
 * A person in an organization. The person is `subject` at `issuer`; a removed person who comes back is the same member.
 */
export type Member = {
  /** `mem_…` */
  readonly _id: string
  readonly organizationId: string
  readonly issuer: string
  readonly subject: string
  /** The email address that the issuer has verified; null: none. */
  readonly email: string | null
  readonly name: string | null
  readonly role: MemberRole
  /** The key that the person acts by. Its scopes are those of the role. */
  readonly apiKeyId: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly removedAt: Date | null
}

/** An invitation of a person to an organization. */
export type Invitation = {
  /** `inv_…` */
  readonly _id: string
  /** HMAC-SHA-256 of the token. */
  readonly digest: string
  readonly organizationId: string
  readonly email: string
  readonly role: MemberRole
  /** The key that created the invitation. */
  readonly invitedBy: string
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly acceptedAt: Date | null
  readonly revokedAt: Date | null
}

/** The parts of the service that erase data. */
export type Eraser = 'billing' | 'knowledge' | 'inference'

/** An erasure, and then its receipt. It contains no names of what was erased. */
export type ErasureRecord = {
  /** `ers_…`. The erasure of an organization has the digits of the organization. */
  readonly _id: string
  readonly organizationId: string
  readonly kind: 'organization' | 'person' | 'document'
  readonly documentId: string | null
  readonly memberId: string | null
  readonly apiKeyIds: readonly string[]
  /** The document, and those that were unpacked from it. Absent until the knowledge subgraph has found them. */
  readonly documentIds?: readonly string[]
  /** The notes that knowledge needs to continue after a crash. */
  readonly notes?: string
  readonly requestedBy: string
  readonly requestedAt: Date
  /** The number of records of each kind that each part of the service found before it deleted anything. */
  readonly found: { readonly [Part in Eraser]?: Readonly<Record<string, number>> }
  /** When each part of the service had erased all its data, and what it retains. */
  readonly ended: { readonly [Part in Eraser]?: { readonly at: Date; readonly kept: readonly KeptRecords[] } }
  /** What all parts retain. Empty until the erasure has ended. */
  readonly kept: readonly KeptRecords[]
  readonly endedAt: Date | null
  /** Set until the erasure has ended: the organization and the target, the organization, and `requestedAt`. */
  readonly openKey?: string
  readonly openOf?: string
  readonly openSince?: Date
}

/** Records that a part of the service retains after an erasure. */
export type KeptRecords = {
  readonly kind: string
  readonly count: number
  /** The reason, as a sentence. */
  readonly reason: string
}

/** A signed-in browser. The session acts by a key. */
export type Session = {
  readonly _id: string
  /** SHA-256 of the token in the browser's cookie. */
  readonly digest: string
  readonly apiKeyId: string
  readonly organizationId: string
  /** How often the key's secret had been replaced when the session was opened. The session ends when that changes. */
  readonly rotations: number
  /** The person who signed in; null: somebody with the text of the key. */
  readonly memberId: string | null
  /** The browser's user agent. */
  readonly userAgent: string | null
  readonly createdAt: Date
  /** When the session was last used, to 5 minutes. */
  readonly lastUsedAt: Date
  readonly expiresAt: Date
}

/** The decisions of the first start. A start after a crash continues with them. */
export type Bootstrap = {
  readonly _id: 'operator'
  readonly organizationId: string
  readonly apiKeyId: string
  /** The operator's key is derived from this nonce and the pepper. */
  readonly nonce: string
  /** The first credit, in nano-USD. */
  readonly credit: number
  readonly at: Date
  /** Fingerprint of the secret that has sealed the pepper. Absent if the pepper is. */
  readonly secretFingerprint?: string
  /** The sealed pepper. Absent until this version has started on the data of an earlier one. */
  readonly sealedPepper?: string
  /** The fingerprint of the next secret, from the start of a rotation to its end. */
  readonly rotatingTo?: string
}

/** The collections of billing's store. */
export interface Collections {
  readonly organizations: DocumentCollection<Organization>
  readonly organizationChanges: DocumentCollection<OrganizationChange>
  readonly apiKeys: DocumentCollection<ApiKey>
  readonly members: DocumentCollection<Member>
  readonly invitations: DocumentCollection<Invitation>
  readonly sessions: DocumentCollection<Session>
  readonly erasures: DocumentCollection<ErasureRecord>
  readonly wallets: DocumentCollection<Wallet>
  readonly entries: DocumentCollection<LedgerEntry>
  readonly usage: DocumentCollection<UsageRecord>
  readonly usageTotals: DocumentCollection<UsageTotal>
  readonly bootstrap: DocumentCollection<Bootstrap>
  readonly webhookEndpoints: DocumentCollection<WebhookEndpoint>
  readonly webhookFeeds: DocumentCollection<WebhookFeedRecord>
  readonly webhookEvents: DocumentCollection<WebhookEventRecord>
  readonly webhookDeliveries: DocumentCollection<WebhookDelivery>
  readonly webhookLanes: DocumentCollection<WebhookLane>
  readonly taskLeases: DocumentCollection<TaskLease>
}

export const BOOTSTRAP: CollectionSpec = { name: 'bootstrap', indexes: [] }

/** Indexes by time, each with one of the filters first. */
const USAGE_INDEXES: readonly IndexSpec[] = [
  { fields: ['organizationId', 'position'] },
  { fields: ['organizationId', 'apiKeyId', 'position'] },
  { fields: ['organizationId', 'modelId', 'position'] },
  { fields: ['organizationId', 'apiKeyId', 'modelId', 'position'] },
]

export function openCollections(store: Pick<DocumentStore, 'collection'>): Collections {
  return {
    organizations: store.collection({ name: 'organizations', indexes: [{ fields: ['erasingSince'], sparse: true }] }),
    organizationChanges: store.collection({ name: 'organization_changes', indexes: [{ fields: ['organizationId'] }] }),
    apiKeys: store.collection({
      name: 'api_keys',
      indexes: [
        { fields: ['digest'], unique: true },
        { fields: ['organizationId'] },
        { fields: ['organizationId', 'revokedAt'] },
        { fields: ['organizationId', 'memberId'] },
        LABELS,
      ],
    }),
    members: store.collection({
      name: 'members',
      indexes: [
        { fields: ['issuer', 'subject', 'organizationId'], unique: true },
        { fields: ['issuer', 'subject', 'removedAt', 'lastSeenAt'] },
        { fields: ['organizationId', 'removedAt'] },
        { fields: ['organizationId'] },
      ],
    }),
    invitations: store.collection({
      name: 'invitations',
      indexes: [
        { fields: ['digest'], unique: true },
        { fields: ['organizationId', 'acceptedAt', 'revokedAt'] },
        { fields: ['organizationId', 'acceptedAt', 'revokedAt', 'expiresAt'] },
        { fields: ['organizationId', 'expiresAt'] },
        LABELS,
      ],
    }),
    sessions: store.collection({
      name: 'sessions',
      indexes: [{ fields: ['digest'], unique: true }, { fields: ['apiKeyId'] }, { fields: ['organizationId'] }, { fields: ['expiresAt'] }],
    }),
    erasures: store.collection({
      name: 'erasures',
      indexes: [
        { fields: ['organizationId'] },
        { fields: ['openKey'], unique: true, sparse: true },
        { fields: ['openOf'], sparse: true },
        { fields: ['openSince'], sparse: true },
      ],
    }),
    wallets: store.collection({ name: 'wallets', indexes: [{ fields: ['nextExpiryAt'], sparse: true }] }),
    entries: store.collection({ name: 'ledger_entries', indexes: [{ fields: ['organizationId', 'sequence'], unique: true }] }),
    usage: store.collection({
      name: 'usage_records',
      indexes: [...USAGE_INDEXES, { fields: ['organizationId', 'requestId', 'position'] }],
    }),
    usageTotals: store.collection({ name: 'usage_totals', indexes: USAGE_INDEXES }),
    bootstrap: store.collection(BOOTSTRAP),
    webhookEndpoints: store.collection({ name: 'webhook_endpoints', indexes: [{ fields: ['organizationId'] }, LABELS] }),
    webhookFeeds: store.collection({ name: 'webhook_feeds', indexes: [{ fields: ['source', 'organizationId'], unique: true }] }),
    webhookEvents: store.collection({
      name: 'webhook_events',
      indexes: [{ fields: ['organizationId', 'order'] }, { fields: ['expiresAt'] }],
    }),
    webhookDeliveries: store.collection({
      name: 'webhook_deliveries',
      indexes: [
        { fields: ['endpointId', 'order'] },
        { fields: ['endpointId', 'status', 'order'] },
        { fields: ['queuedIn', 'position'], sparse: true },
        { fields: ['expiresAt'] },
      ],
    }),
    webhookLanes: store.collection({
      name: 'webhook_lanes',
      indexes: [{ fields: ['endpointId'] }, { fields: ['endpointId', 'job.dueAt'] }, { fields: ['job.dueAt'] }],
    }),
    taskLeases: store.collection(TASK_LEASES),
  }
}
