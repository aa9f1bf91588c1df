import { Client, errors } from '@elastic/elasticsearch'
import { ServiceUnavailable } from '../../../common/errors.ts'

/**
 * For reads and small writes. Searches of a healthy index take milliseconds. Writes of many chunks set a longer time
 * themselves.
 */
export const REQUEST_TIMEOUT_MS = 10_000
/**
 * Every call may be repeated, because ids are deterministic. One repetition gets past a connection that the server has
 * closed.
 */
const MAX_RETRIES = 1
/** Open requests to the index. More wait here instead of in the server's queues. */
const MAX_CONNECTIONS = 64

/**
 * Statuses that mean that the index cannot serve now. Somebody may also have removed an index, an alias or a privilege.
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([401, 403, 404, 408, 429, 500, 502, 503, 504])

/** `url` may contain `user:password@`. No error contains it or the key. */
export function elasticsearchClient(url: string, apiKey: string | undefined): Client {
  const node = new URL(url)
  const username = decodeURIComponent(node.username)
  const password = decodeURIComponent(node.password)
  node.username = ''
  node.password = ''
  return new Client({
    node: node.href,
    ...(apiKey !== undefined ? { auth: { apiKey } } : username !== '' ? { auth: { username, password } } : {}),
    maxRetries: MAX_RETRIES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    compression: false,
    sniffOnStart: false,
    sniffOnConnectionFault: false,
    enableMetaHeader: false,
    redaction: { type: 'remove' },
    agent: { connections: MAX_CONNECTIONS },
  })
}

/** Gives the answer, or throws the port's own error. The caller's abort stays an abort. */
export async function awaitAnswer<T>(answer: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await answer
  } catch (error) {
    signal?.throwIfAborted()
    throw error instanceof errors.ElasticsearchClientError ? toFailure(readStatus(error), described(error)) : error
  }
}

/** Status 0: there was no answer. Anything but an unavailable index is a defect of this adapter. */
export function toFailure(status: number, description: string): Error {
  const cause = new Error(`Elasticsearch: ${description}`)
  return status === 0 || UNAVAILABLE.has(status) ? new ServiceUnavailable('The chunk index', { cause }) : cause
}

export function readStatus(error: unknown): number {
  return error instanceof errors.ResponseError ? (error.statusCode ?? 0) : 0
}

/** Only names the failure: a driver's error also contains the request, and a server's reason may quote a document. */
export function described(error: unknown): string {
  if (!(error instanceof errors.ResponseError)) return error instanceof Error ? `${error.name}: ${error.message}` : 'unknown failure'
  const body = error.body as { readonly error?: { readonly type?: unknown } } | undefined
  const type = body?.error?.type
  return `status ${readStatus(error)}${typeof type === 'string' ? `, ${type}` : ''}`
}
