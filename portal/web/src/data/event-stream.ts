import { createClient, NetworkError } from 'graphql-sse'
import type { Sent } from './resume.ts'

/** Callbacks of a subscription, as graphql-ws and graphql-sse define them. */
export interface Listener {
  next(event: unknown): void
  error(error: unknown): void
  complete(): void
}

/** Each subscription is a request of its own. It is not retried: a chat that starts twice costs twice. */
const client = createClient({ url: '/graphql', credentials: 'same-origin', retryAttempts: 0 })

/**
 * Subscribes by HTTP and server-sent events, with variables up to the limit of a body. A response that is no stream of
 * events fails with its errors. Returns the function that ends the subscription.
 */
export function subscribeByHttp(sent: Sent, listener: Listener): () => void {
  return client.subscribe(sent, {
    next: (event) => listener.next(event),
    complete: () => listener.complete(),
    error: (error) => void errorsOf(error).then((errors) => listener.error(errors)),
  })
}

async function errorsOf(error: unknown): Promise<unknown> {
  const response = error instanceof NetworkError ? (error.response as Response | undefined) : undefined
  const body = (await response?.json().catch(() => undefined)) as { readonly errors?: unknown } | undefined
  return body?.errors ?? error
}
