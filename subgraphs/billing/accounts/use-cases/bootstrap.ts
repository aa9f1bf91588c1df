import { createHmac } from 'node:crypto'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { toStored } from '../../ledger/domain/money.ts'
import { emptyWallet } from '../../ledger/domain/wallet.ts'
import { creditWallet } from '../../ledger/use-cases/credit-wallet.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Bootstrap } from '../../use-cases/tables.ts'
import { DEFAULT_PLAN } from './create-organization.ts'
import { keptOf, newSecret } from './new-api-key.ts'

export interface BootstrapSettings {
  /** The operator's key, when the operator brings one. */
  readonly apiKey: string | null
  readonly creditNanoUsd: bigint
}

/**
 * Makes the first organization with its credit and its operator's key, and gives the key while nobody has used it. Every start runs it:
 * each step does nothing where it was done before, so a crash anywhere is mended by the next start. The key follows from the pepper and a
 * stored nonce, so a start that goes on after a crash shows the key that an earlier start may have shown, and one that was noted
 * down stays right. A key that the operator brings is taken on the first start only, and not given back; later another one is ignored.
 */
export async function bootstrap(deps: BillingDeps, settings: BootstrapSettings): Promise<string | null> {
  const { organizations, wallets, apiKeys } = deps.collections
  const { organizationId, apiKeyId, nonce, credit, at } = await claim(deps, settings)
  const made = newSecret(deps.pepper, createHmac('sha256', deps.pepper).update(`operator key ${nonce}`).digest())
  const kept = settings.apiKey === null ? { digest: made.digest, last4: made.last4, unseen: true } : keptOf(settings.apiKey, deps.pepper)

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
      ...kept,
    },
  ])
  // Last, so that no key works before everything is there.
  await organizations.insertMissing([
    { _id: organizationId, name: 'Default organization', residencyPolicy: 'unrestricted', plan: DEFAULT_PLAN, createdAt: at },
  ])
  const key = await apiKeys.findOne({ _id: apiKeyId })
  if (settings.apiKey !== null && key?.digest !== kept.digest)
    deps.log.warn({ apiKeyId }, 'KIS_BOOTSTRAP_API_KEY is not the operator key of the first start any more, and is ignored')
  return settings.apiKey === null && key?.unseen && key.digest === made.digest ? made.key : null
}

/** What the first of all starts decided. */
async function claim({ collections, ids, clock }: BillingDeps, { creditNanoUsd }: BootstrapSettings): Promise<Bootstrap> {
  const earlier = await collections.bootstrap.findOne({ _id: 'operator' })
  if (earlier) return earlier
  const first: Bootstrap = {
    _id: 'operator',
    organizationId: ids('org'),
    apiKeyId: ids('key'),
    nonce: randomHex(32),
    credit: toStored(creditNanoUsd),
    at: clock.now(),
  }
  try {
    await collections.bootstrap.insertOne(first)
    return first
  } catch (error) {
    // Another process of the same first start was quicker.
    const other = error instanceof DuplicateKey && (await collections.bootstrap.findOne({ _id: 'operator' }))
    if (!other) throw error
    return other
  }
}
