import { z } from 'zod'
import { EVENT_TYPES } from '../../../../schema/events.ts'
import { MAX_INT } from '../../../common/check.ts'
import { recordKind, reportKind } from '../../../common/portable/record-kind.ts'
import { count, date, id, scopes, text } from '../../../common/portable/shapes.ts'
import { MEMBER_ROLES } from '../../accounts/domain/member-role.ts'
import type { SpendLimit } from '../../ledger/domain/key-spending.ts'
import { MAX_NANO_USD } from '../../ledger/domain/money.ts'
import type { WebhookEndpoint } from '../../webhooks/domain/records.ts'
import type { ApiKey, Member, Organization } from '../tables.ts'

const NAME = text(1_000)
/** More than the limit of a key's ancestors. */
const MAX_ANCESTORS = 100
const MAX_MODELS = 10_000
const MAX_OWNERS = 10_000
const nanoUsd = () => z.int().min(0).max(Number(MAX_NANO_USD))

const callLimit = () => z.int().min(1).max(MAX_INT)

const LIMITS = z.strictObject({
  storageBytes: count().optional(),
  vectors: count().max(MAX_INT).optional(),
  maxFileBytes: count().max(MAX_INT).optional(),
  requestsPerMinute: callLimit().optional(),
  tokensPerMinute: callLimit().optional(),
  concurrency: callLimit().optional(),
  ocrPages: count().max(MAX_INT).optional(),
})

/** The organization's own record: the first one of an archive. */
export const ORGANIZATION = recordKind<
  Organization,
  '_id' | 'revision' | 'deletedAt' | 'erasingSince' | 'ownersRevision' | 'lastChange' | 'import'
>('billing/organization', {
  name: NAME,
  residencyPolicy: z.enum(['unrestricted', 'regional', 'local_only']),
  plan: text(200),
  lowBalanceThreshold: nanoUsd().nullable().optional(),
  limits: LIMITS.optional(),
  suspendedAt: date().nullable().optional(),
  suspensionReason: NAME.nullable().optional(),
  owners: z.array(id('mem')).max(MAX_OWNERS).optional(),
  createdAt: date(),
})

/** A key without the fields that identify its secret. */
export const API_KEY = recordKind<ApiKey, 'organizationId' | 'digest' | 'last4' | 'rotations' | 'unseen'>('billing/api-keys', {
  _id: id('key'),
  name: NAME,
  ancestors: z.array(id('key')).max(MAX_ANCESTORS).optional(),
  scopes: scopes(),
  modelAllowlist: z.array(text(500)).max(MAX_MODELS).nullable(),
  requestsPerMinute: callLimit().nullable().optional(),
  tokensPerMinute: callLimit().nullable().optional(),
  memberId: id('mem').optional(),
  leavesDescendants: z.boolean().optional(),
  expiresAt: date().nullable(),
  revokedAt: date().nullable(),
  createdAt: date(),
  lastUsedAt: date().optional(),
})

type KeySpendLimit = SpendLimit & { readonly _id: string }

/** The spend limit of a key, which is stored in the wallet. */
export const SPEND_LIMIT = recordKind<KeySpendLimit, never>('billing/spend-limits', {
  _id: id('key'),
  amount: nanoUsd(),
  period: z.enum(['day', 'month', 'total']),
})

export const MEMBER = recordKind<Member, 'organizationId'>('billing/members', {
  _id: id('mem'),
  issuer: text(2_048),
  subject: text(2_048),
  email: text(1_000).nullable(),
  name: text(1_000).nullable(),
  role: z.enum(MEMBER_ROLES),
  apiKeyId: id('key'),
  createdAt: date(),
  lastSeenAt: date(),
  removedAt: date().nullable(),
})

/** An endpoint without its secret and its deliveries. */
export const WEBHOOK = recordKind<
  WebhookEndpoint,
  | 'organizationId'
  | 'isActive'
  | 'disabledReason'
  | 'disabledAt'
  | 'failingSince'
  | 'nonce'
  | 'previousNonce'
  | 'previousUntil'
  | 'sealedSecret'
  | 'sealedPreviousSecret'
>('billing/webhooks', {
  _id: id('whe'),
  url: text(2_048),
  description: text(10_000).nullable(),
  eventTypes: z.array(z.enum(EVENT_TYPES)).max(EVENT_TYPES.length),
  createdAt: date(),
})

export const WALLET_REPORT = reportKind('report/wallet')
export const LEDGER_REPORT = reportKind('report/ledger')
export const USAGE_REPORT = reportKind('report/usage')
export const CHANGES_REPORT = reportKind('report/changes')
