import type { Resolvers } from '../../common/link/subgraph.ts'
import { LEDGER_FINDING_KINDS } from '../ledger/domain/ledger-audit.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

/** The contract's enum values, and what the code calls them. */
export const enums: Resolvers<BillingDeps> = {
  ResidencyPolicy: { UNRESTRICTED: 'unrestricted', REGIONAL: 'regional', LOCAL_ONLY: 'local_only' },
  Scope: {
    INFERENCE: 'inference',
    KNOWLEDGE_READ: 'knowledge:read',
    KNOWLEDGE_WRITE: 'knowledge:write',
    AGENTS: 'agents',
    BILLING_READ: 'billing:read',
    ADMIN: 'admin',
    OPERATOR: 'operator',
  },
  LedgerEntryKind: { TOP_UP: 'top_up', ADJUSTMENT: 'adjustment', HOLD: 'hold', SETTLE: 'settle', VOID: 'void', EXPIRE: 'expire' },
  LedgerFindingKind: Object.fromEntries(LEDGER_FINDING_KINDS.map((kind) => [kind.toUpperCase(), kind])),
  Operation: { CHAT_COMPLETION: 'chat_completion', EMBEDDING: 'embedding', TRANSCRIPTION: 'transcription' },
  UsageSource: { PROVIDER: 'provider', COUNTED: 'counted', ESTIMATED: 'estimated' },
  UsageUnit: {
    INPUT_TOKENS: 'inputTokens',
    CACHED_INPUT_TOKENS: 'cachedInputTokens',
    CACHE_WRITE_TOKENS: 'cacheWriteTokens',
    OUTPUT_TOKENS: 'outputTokens',
    AUDIO_MILLISECONDS: 'audioMilliseconds',
  },
  SpendPeriod: { DAY: 'day', MONTH: 'month', TOTAL: 'total' },
  UsageDimension: { MODEL: 'model', KEY: 'key', DAY: 'day', OPERATION: 'operation' },
  BalanceCrossing: { FELL: 'fell', ROSE: 'rose' },
  WebhookDisabledReason: { GONE: 'gone', FAILING: 'failing', BACKLOG: 'backlog', RESIDENCY: 'residency' },
  WebhookDeliveryStatus: { PENDING: 'pending', DELIVERED: 'delivered', FAILED: 'failed' },
  HoldState: { PLACED: 'placed', DISPATCHED: 'dispatched', SETTLED: 'settled', VOIDED: 'voided', EXPIRED: 'expired' },
}
