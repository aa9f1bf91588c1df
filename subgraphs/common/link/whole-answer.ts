import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'

export interface WholeAnswer {
  readonly statusCode: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface WholeRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Hears the status of each interim answer. */
  readonly interim: (statusCode: number) => void
}

/** A request under way. */
export interface Asked {
  readonly answer: Promise<WholeAnswer>
  /** Ends it, if it is not over: the answer rejects with the reason at once. */
  cancel(reason: unknown): void
}

/**
 * Sends a POST request and reads its whole answer. `request` of undici does the same by way of a stream and of signals,
 * which costs as much as everything else about a small request.
 */
export function askWhole(dispatcher: Dispatcher, { path, headers, body, interim }: WholeRequest): Asked {
  const { promise: answer, resolve, reject } = Promise.withResolvers<WholeAnswer>()
  const pieces: Buffer[] = []
  let head: Pick<WholeAnswer, 'statusCode' | 'headers'> | undefined
  let controller: Dispatcher.DispatchController | undefined
  let cancelled: { readonly reason: Error } | undefined
  dispatcher.dispatch(
    { method: 'POST', path, headers, body },
    {
      onRequestStart(its) {
        controller = its
        // It waited for a connection.
        if (cancelled) its.abort(cancelled.reason)
      },
      onResponseStart(_controller, statusCode, its) {
        if (statusCode < 200) interim(statusCode)
        else head = { statusCode, headers: its }
      },
      onResponseData: (_controller, piece) => void pieces.push(piece),
      onResponseEnd: () => resolve({ ...head!, text: (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)).toString() }),
      onResponseError: (_controller, error) => reject(error),
    },
  )
  return {
    answer,
    cancel(reason) {
      cancelled = { reason: reason instanceof Error ? reason : new Error(String(reason)) }
      reject(reason)
      controller?.abort(cancelled.reason)
    },
  }
}
