import type { CallContext } from './inference.ts'

/** Pays for pages that OCR reads, and counts them in the quota of the plan. A GraphQL client of billing implements it. */
export interface PageBilling {
  /**
   * Reserves the price of pages, counts them in this month's quota, and gives the hold's id. A hold that is not renewed
   * for an hour ends: nothing is charged, and nothing counts.
   * @throws {KisError} `insufficient_quota`: the plan does not allow that many pages, or the wallet has too little
   */
  hold(pages: number, context: CallContext): Promise<string>
  /** Reports whether the hold is still open. It then lasts for another hour. */
  renew(holdId: string, context: CallContext): Promise<boolean>
  /**
   * Charges the pages and frees the rest, or reports that the hold had ended without a charge. Idempotent: a hold is
   * charged once.
   */
  settle(holdId: string, pages: number, context: CallContext): Promise<boolean>
}
