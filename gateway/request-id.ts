import type { IdSource } from '../subgraphs/common/process/ids.ts'

/** Accepted request IDs. They go into logs and usage records, which other characters could break. */
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Returns the ID that a process of this service sent with the request, or a new one. IDs of other senders are ignored:
 * they may repeat, and would become the IDs of other calls' usage records.
 */
export function chooseRequestId(sent: unknown, isService: boolean, ids: IdSource): string {
  return isService && typeof sent === 'string' && ACCEPTED.test(sent) ? sent : ids('req')
}
