import type { IdSource } from '../subgraphs/common/process/ids.ts'

/** An id from outside only goes into logs and usage records. Other characters could break them. */
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Gives the id that a process of this service sent with the request, or a new one. Ids of others do not count: they may
 * repeat, and would become those of other calls' usage records.
 */
export function chooseRequestId(sent: unknown, isService: boolean, ids: IdSource): string {
  return isService && typeof sent === 'string' && ACCEPTED.test(sent) ? sent : ids('req')
}
