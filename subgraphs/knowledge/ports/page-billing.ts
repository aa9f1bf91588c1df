import type { CallContext } from './inference.ts'

/** Charges pages that OCR reads, and counts them in the plan's quota. A GraphQL client of billing implements it. */
export interface PageBilling {
  /**
   * Reserves the price of the pages, counts them in this month's quota, and returns the hold's ID. A hold that is not
   * renewed for an hour expires without a charge or a count.
   * @throws {KisError} `insufficient_quota`: the plan does not allow that many pages, or the wallet has too little
   */
  hold(pages: number, context: CallContext): Promise<string>
  /** Extends an open hold by an hour. Returns false if the hold has ended. */
  renew(holdId: string, context: CallContext): Promise<boolean>
  /**
   * Charges the pages and releases the rest of the hold. Returns false if the hold had ended without a charge.
   * Idempotent: a hold is charged once.
   */
  settle(holdId: string, pages: number, context: CallContext): Promise<boolean>
}
