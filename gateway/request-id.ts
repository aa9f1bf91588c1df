import type { IdSource } from '../subgraphs/common/process/ids.ts'

/** An id that comes from outside is only written into logs and usage records, which it must not be able to break. */
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/

/** The id that came with the request (the rest-adapter of another process sends one), or a new one. */
export function requestIdOf(sent: unknown, ids: IdSource): string {
  return typeof sent === 'string' && ACCEPTED.test(sent) ? sent : ids('req')
}
