import { createHmac } from 'node:crypto'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { toStored } from '../../ledger/domain/money.ts'
import { emptyWallet } from '../../ledger/domain/wallet.ts'
import { creditWallet } from '../../ledger/use-cases/credit-wallet.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Bootstrap } from '../../use-cases/tables.ts'
import { DEFAULT_PLAN } from './create-organization.ts'
import { newPepper, type PepperDeps } from './key-pepper.ts'
import { newSecret, toStoredKey } from './new-api-key.ts'

export interface BootstrapSettings {
  /** The operator's own key. Null: the service makes one. */
  readonly apiKey: string | null
  readonly creditNanoUsd: bigint
}

/**
 * Creates the first organization with its credit and the operator's key. Gives the key as long as nobody has used it.
 * Every start runs this. Each step does nothing if it was done before, so the next start repairs a crash at any point.
 * The key is derived from the pepper and a stored nonce, so later starts show the same key again. A key that the
 * operator brings is only taken at the first start, and never given back. Later, another one is ignored.
 */
export async function bootstrap(
  deps: BillingDeps,
  settings: Pick<BootstrapSettings, 'apiKey'>,
  { organizationId, apiKeyId, nonce, credit, at }: Bootstrap,
): Promise<string | null> {
  const { organizations, wallets, apiKeys } = deps.collections
  const pepper = deps.pepper()
  const { key: text, ...generated } = newSecret(pepper, createHmac('sha256', pepper).update(`operator key ${nonce}`).digest())
  const stored = settings.apiKey === null ? { ...generated, unseen: true } : toStoredKey(settings.apiKey, pepper)

  await wallets.insertMissing([emptyWallet(organizationId)])
  if (credit > 0) await creditWallet(deps, { kind: 'top_up', organizationId, amount: BigInt(credit), reference: 'bootstrap' })
  await apiKeys.insertMissing([
    {
      _id: apiKeyId,
      organizationId,
      name: 'Operator',
      scopes: ['admin', 'operator'],
      modelAllowlist: null,
      expiresAt: null,
      revokedAt: null,
      createdAt: at,
      ...stored,
    },
  ])
  // Last, so that no key works before everything exists.
  await organizations.insertMissing([
    { _id: organizationId, name: 'Default organization', residencyPolicy: 'unrestricted', plan: DEFAULT_PLAN, createdAt: at },
  ])
  const key = await apiKeys.findOne({ _id: apiKeyId })
  if (settings.apiKey !== null) {
    if (key?.digest !== stored.digest)
      deps.log.warn({ apiKeyId }, 'KIS_BOOTSTRAP_API_KEY is ignored: the operator key of the first start is another one, or was replaced')
    return null
  }
  return key?.unseen && key.digest === generated.digest ? text : null
}

/** The decisions of the very first start. */
export async function decideFirst(
  { collections, secret, ids, clock }: Pick<BillingDeps, 'ids' | 'clock'> & PepperDeps,
  { creditNanoUsd }: Pick<BootstrapSettings, 'creditNanoUsd'>,
): Promise<Bootstrap> {
  const earlier = await collections.bootstrap.findOne({ _id: 'operator' })
  if (earlier) return earlier
  const first: Bootstrap = {
    _id: 'operator',
    organizationId: ids('org'),
    apiKeyId: ids('key'),
    nonce: randomHex(32),
    credit: toStored(creditNanoUsd),
    at: clock.now(),
    ...newPepper(secret),
  }
  try {
    await collections.bootstrap.insertOne(first)
    return first
  } catch (error) {
    // Another process of the same first start was faster.
    const other = error instanceof DuplicateKey && (await collections.bootstrap.findOne({ _id: 'operator' }))
    if (!other) throw error
    return other
  }
}
