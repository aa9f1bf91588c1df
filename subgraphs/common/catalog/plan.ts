import type { z } from 'zod'
import { MAX_INT } from '../check.ts'
import type { Plan } from '../identity/principal.ts'
import { formatUsd } from '../usd.ts'
import { mapping, optional, usd, whole } from './fields.ts'

/** What an organization may use, plus limits that only one part of the service applies. */
export interface CatalogPlan extends Plan {
  /** Limit of nodes in the result of one GraphQL operation. */
  readonly operationNodes: number
  /** How many documents of an organization start in one round while several organizations wait. */
  readonly ingestionWeight: number
}

/** A list of 100 runs with all their parts has 8,700 nodes. 150,000 blocked the event loop for 5 s. */
export const DEFAULT_OPERATION_NODES = 10_000

/**
 * The largest file that one request may contain as base64. The processes of such a request hold its body several times.
 * Larger files use a resumable upload, in pieces.
 */
export const MAX_INLINE_FILE_BYTES = 25 * 1024 ** 2

/** The plan of the bootstrap organization: 10 GiB, a million vectors, files of 512 MiB. */
export const SELF_HOSTED: CatalogPlan = {
  code: 'self-hosted',
  storageBytes: 10 * 1024 ** 3,
  vectors: 1_000_000,
  maxFileBytes: 512 * 1024 ** 2,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: 512,
  ocrPages: null,
  ocrPagePrice: '0',
  operationNodes: DEFAULT_OPERATION_NODES,
  ingestionWeight: 1,
}

/** GraphQL returns the limits as `Int`. */
const LIMIT = optional(whole(0, MAX_INT))

/** While an organization waits, each other one starts at most this many documents. */
const MAX_WEIGHT = 10

/** Billing stores the price of a million units, which is at most 9,000,000 USD. */
const MAX_PAGE_PRICE = 9_000_000_000n

/** Limits of calls, at least 1. To allow no calls, operators suspend the organization. */
const CALL_LIMIT = optional(whole(1, MAX_INT))

/** The fields of a plan in the catalog. */
export const PLAN = mapping({
  storage_bytes: optional(whole(0, Number.MAX_SAFE_INTEGER)),
  vectors: LIMIT,
  max_file_bytes: LIMIT,
  requests_per_minute: CALL_LIMIT,
  tokens_per_minute: CALL_LIMIT,
  concurrency: CALL_LIMIT,
  ocr_pages: LIMIT,
  ocr_page_price: usd().refine((price) => price === null || price <= MAX_PAGE_PRICE, 'must be at most "9" USD'),
  operation_nodes: LIMIT,
  ingestion_weight: optional(whole(1, MAX_WEIGHT)),
})

/** Converts the fields of a plan. Absent limits that every organization needs are those of `SELF_HOSTED`. */
export function toPlan(code: string, fields: z.output<typeof PLAN>): CatalogPlan {
  return {
    code,
    storageBytes: fields.storage_bytes,
    vectors: fields.vectors,
    maxFileBytes: fields.max_file_bytes ?? SELF_HOSTED.maxFileBytes,
    requestsPerMinute: fields.requests_per_minute,
    tokensPerMinute: fields.tokens_per_minute,
    concurrency: fields.concurrency ?? SELF_HOSTED.concurrency,
    ocrPages: fields.ocr_pages,
    ocrPagePrice: formatUsd(fields.ocr_page_price ?? 0n),
    operationNodes: fields.operation_nodes ?? DEFAULT_OPERATION_NODES,
    ingestionWeight: fields.ingestion_weight ?? SELF_HOSTED.ingestionWeight,
  }
}
