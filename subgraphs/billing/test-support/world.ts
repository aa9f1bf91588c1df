import { randomBytes } from 'node:crypto'
import { FileChecks } from '../../common/adapters/sqlite/full-checks.ts'
import { Egress } from '../../common/egress/egress.ts'
import { CONFIRM_MS, type Plan, type Principal, type Scope } from '../../common/identity/principal.ts'
import { SealedTexts } from '../../common/identity/sealed-text.ts'
import type { DocumentStore } from '../../common/ports/document-store.ts'
import type { Clock } from '../../common/process/clock.ts'
import { type IdSource, idSource } from '../../common/process/ids.ts'
import { silentLog } from '../../common/process/log.ts'
import type { Rates } from '../ledger/domain/money.ts'
import { emptyWallet } from '../ledger/domain/wallet.ts'
import { creditWallet } from '../ledger/use-cases/credit-wallet.ts'
import { OutboxPump } from '../ledger/use-cases/outbox-pump.ts'
import { WalletWriter } from '../ledger/use-cases/wallet-writer.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import { openCollections } from '../use-cases/tables.ts'

/**
 * What tests of billing are built from: a clock that they control, the use cases on a store of theirs, organizations
 * with credit.
 */

export class ManualClock implements Clock {
  #now = Date.parse('2026-11-21T08:00:00.000Z')
  #latest = this.#now

  now(): Date {
    return new Date(this.#now)
  }

  /** The latest time that it has shown, in milliseconds since 1970. */
  get latest(): number {
    return this.#latest
  }

  /** May be negative, as when a clock is set back. */
  advance(ms: number): void {
    this.#now += ms
    this.#latest = Math.max(this.#latest, this.#now)
  }

  /** Calls under way have begun at once. A loop never wakes: tests call what it would call. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms === CONFIRM_MS) return Promise.resolve()
    return new Promise((_resolve, reject) => {
      signal?.throwIfAborted()
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  }
}

export const SELF_HOSTED: Plan = {
  code: 'self-hosted',
  storageBytes: 10_737_418_240,
  vectors: 1_000_000,
  maxFileBytes: 536_870_912,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: 512,
}

export const SMALL_PLAN: Plan = { ...SELF_HOSTED, code: 'small', storageBytes: 1_000_000, vectors: 100, requestsPerMinute: 60 }

const PEPPER = new Uint8Array(32).fill(7)

/** What the mark of a store says. */
export const TEST_MARK = () => ({ installation: { id: 'inst_1' }, madeWith: null })

/** Billing's objects in one process. Opening them again on the same store and clock stands for a restart. */
export function openBilling(store: DocumentStore, clock: Clock, ids: IdSource = idSource(clock)): BillingDeps {
  const collections = openCollections(store)
  const pump = new OutboxPump(collections, silentLog)
  const writer = new WalletWriter(collections, pump)
  return {
    collections,
    isExclusive: true,
    files: new FileChecks([]),
    pump,
    writer,
    plans: [SELF_HOSTED, SMALL_PLAN],
    pepper: () => PEPPER,
    sealed: new SealedTexts(new Uint8Array(32).fill(8)),
    egress: new Egress(),
    publicUrl: 'https://kis.example',
    retryBackoffMs: 1_000,
    webhooksDue: () => {},
    installationId: async () => 'inst_1',
    clock,
    ids,
    log: silentLog,
  }
}

export const FREE: Rates = {
  ...{ inputTokens: 0n, cachedInputTokens: 0n, cacheWriteTokens: 0n, outputTokens: 0n },
  ...{ audioMilliseconds: 0n, searchUnits: 0n, pages: 0n },
}

/** A rate card without tiers, on which all else is free. */
export const createCard = (rates: Partial<Rates>) => ({ version: 'v1', ...FREE, ...rates, tiers: [] })

export function createPrincipal(organizationId: string, scopes: readonly Scope[] = ['inference'], apiKeyId = 'key_1'): Principal {
  return {
    organizationId,
    apiKeyId,
    scopes,
    modelAllowlist: null,
    residencyPolicy: 'unrestricted',
    revision: 0,
    ancestors: [],
    rotations: 0,
    plan: SELF_HOSTED,
    requestsPerMinute: null,
    tokensPerMinute: null,
  }
}

/** An organization with this much to spend. */
export async function fundedOrganization(deps: BillingDeps, nanoUsd: bigint): Promise<Principal> {
  const organizationId = `org_${randomBytes(16).toString('hex')}`
  await deps.collections.wallets.insertOne(emptyWallet(organizationId))
  if (nanoUsd > 0n) await creditWallet(deps, { kind: 'top_up', organizationId, amount: nanoUsd, reference: 'first' })
  return createPrincipal(organizationId)
}
