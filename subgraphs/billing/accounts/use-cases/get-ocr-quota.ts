import { nextReset } from '../../ledger/domain/key-spending.ts'
import { monthOf, pagesIn } from '../../ledger/domain/wallet.ts'
import { findWallet } from '../../ledger/use-cases/read-ledger.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Organization } from '../../use-cases/tables.ts'
import { getPlan } from './find-principal.ts'

interface OcrQuota {
  readonly used: number
  /** Pages per month; null: no limit. */
  readonly limit: number | null
  readonly resetsAt: Date
}

/**
 * Returns how many pages OCR has read for an organization in this month of UTC, or is reading, and how many its plan
 * allows.
 */
export async function getOcrQuota(deps: BillingDeps, organization: Organization): Promise<OcrQuota> {
  const now = deps.clock.now()
  const wallet = await findWallet(deps, organization._id)
  const { ocrPages = null } = getPlan(deps, organization)
  return { used: pagesIn(wallet?.ocr, monthOf(now)), limit: ocrPages, resetsAt: nextReset('month', now)! }
}
