import type { IdSource } from '../subgraphs/common/process/ids.ts'

/** An id from outside only goes into logs and usage records. Other characters could break them. */
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/

/** Gives the id that came with the request (the rest-adapter of another process sends one), or a new one. */
export function chooseRequestId(sent: unknown, ids: IdSource): string {
  return typeof sent === 'string' && ACCEPTED.test(sent) ? sent : ids('req')
}
