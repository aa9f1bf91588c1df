import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasJustStoodStill } from '../process/standstill.ts'

/** A link asks by it to hear that its operation begins. */
export const BEGIN_HEADER = 'x-kis-begin'
/** Status of an interim answer: the operation begins. */
export const PROCESSING = 102

/**
 * Tells a link that its operation begins, if it wants to hear that. Call it before anything is done for the operation.
 * False: refuse it, because it may have been begun elsewhere while this process stood still.
 */
export function tellBegin({ headers }: IncomingMessage, response: ServerResponse): boolean {
  if (!headers[BEGIN_HEADER]) return true
  if (hasJustStoodStill()) return false
  response.writeProcessing()
  return true
}

/** The same for a subscription: a message of `graphql-transport-ws` that may come at any time. */
export function beginNote(subscription: string): string {
  return JSON.stringify({ type: 'pong', payload: { begun: subscription } })
}

/** The name in the payload of a note. */
export function readBeginNote(payload: Readonly<Record<string, unknown>> | undefined): string | undefined {
  return typeof payload?.begun === 'string' ? payload.begun : undefined
}
