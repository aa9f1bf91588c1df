import type { StoreFiles } from '../../common/documents/verify-files.ts'
import type { Egress } from '../../common/egress/egress.ts'
import type { Plan } from '../../common/identity/principal.ts'
import type { SealedTexts } from '../../common/identity/sealed-text.ts'
import type { Clock } from '../../common/process/clock.ts'
import type { IdSource } from '../../common/process/ids.ts'
import type { Log } from '../../common/process/log.ts'
import type { OutboxPump } from '../ledger/use-cases/outbox-pump.ts'
import type { WalletWriter } from '../ledger/use-cases/wallet-writer.ts'
import type { Collections } from './tables.ts'

/** What the use cases need. */
export interface BillingDeps {
  readonly collections: Collections
  /** No other process uses the store, so none of an earlier version. */
  readonly isExclusive: boolean
  readonly files: StoreFiles
  readonly pump: OutboxPump
  readonly writer: WalletWriter
  /** The plans of the operator's catalog. */
  readonly plans: readonly Plan[]
  /**
   * The key of the digests of keys and of invitations, and of the secrets of webhooks.
   * @throws {ServiceUnavailable} the store is not open yet
   */
  readonly pepper: () => Uint8Array
  /** Has sealed secrets of webhooks. */
  readonly sealed: SealedTexts
  /** Calls the addresses of webhooks. */
  readonly egress: Pick<Egress, 'allows' | 'mayReach' | 'isNamed' | 'open'>
  /** The address at which people reach the service, without a slash at its end; null: the operator has not said. */
  readonly publicUrl: string | null
  /** The unit of the waits after failed webhooks, in milliseconds. */
  readonly retryBackoffMs: number
  /** Wakes the sender of webhooks. */
  readonly webhooksDue: () => void
  /** The id that every store of the installation carries. */
  readonly installationId: () => Promise<string>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}
