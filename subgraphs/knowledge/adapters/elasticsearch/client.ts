import {
  Client,
  type ConnectionOptions,
  type ConnectionRequestOptions,
  type ConnectionRequestOptionsAsStream,
  type ConnectionRequestParams,
  type ConnectionRequestResponse,
  type ConnectionRequestResponseAsStream,
  errors,
  type estypes,
  UndiciConnection,
} from '@elastic/elasticsearch'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { parseElasticsearchUrl } from '../../domain/elasticsearch-url.ts'

/**
 * For reads and small writes. Searches of a healthy index take milliseconds. Writes of many chunks set a longer time
 * themselves.
 */
export const REQUEST_TIMEOUT_MS = 10_000
/** Open requests to the index. More wait here instead of in the server's queues. */
export const MAX_CONNECTIONS = 64

/**
 * Statuses that mean that the index cannot serve now. Somebody may also have removed an index, an alias or a privilege.
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([401, 403, 404, 408, 429, 500, 502, 503, 504])

/** `url` may name several nodes, and contain `user:password@`. No error contains it or the key. */
export function elasticsearchClient(url: string, apiKey: string | undefined): Client {
  const { nodes, username, password } = parseElasticsearchUrl(url)
  return new Client({
    nodes: [...nodes],
    ...(apiKey !== undefined ? { auth: { apiKey } } : username !== '' ? { auth: { username, password } } : {}),
    // Every call may be repeated, because ids are deterministic. As often as there are nodes gets past those that are lost,
    // and past a connection that the server has closed.
    maxRetries: nodes.length,
    requestTimeout: REQUEST_TIMEOUT_MS,
    compression: false,
    sniffOnStart: false,
    sniffOnConnectionFault: false,
    enableMetaHeader: false,
    redaction: { type: 'remove' },
    Connection: TimedConnection,
    agent: { connections: MAX_CONNECTIONS },
  })
}

/**
 * Ends each request by its time limit, or when its caller leaves, also while it waits for one of the connections. undici
 * leaves a request alone there, and counts from when a connection takes it. The driver's own timer ends a request by an
 * event on the caller's signal, which would end the caller's others, too.
 */
class TimedConnection extends UndiciConnection {
  constructor(options: ConnectionOptions) {
    // Otherwise undici ends by the default limit also those that may take longer.
    super({ ...options, timeout: null })
  }

  override request(params: ConnectionRequestParams, options: ConnectionRequestOptions): Promise<ConnectionRequestResponse>
  override request(params: ConnectionRequestParams, options: ConnectionRequestOptionsAsStream): Promise<ConnectionRequestResponseAsStream>
  override async request(
    params: ConnectionRequestParams,
    { signal, timeout, ...options }: ConnectionRequestOptions,
  ): Promise<ConnectionRequestResponse | ConnectionRequestResponseAsStream> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeout ?? REQUEST_TIMEOUT_MS)
    const over = AbortSignal.any(signal ? [signal, late.signal] : [late.signal])
    try {
      return await untilAborted(super.request(params, { ...options, signal: over }), over)
    } catch (error) {
      if (signal?.aborted) throw new errors.RequestAbortedError('Request aborted')
      throw late.signal.aborted ? new errors.TimeoutError('Request timed out') : error
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Gives the answer, or throws the port's own error. The caller's abort stays an abort. */
export async function awaitResponse<T>(response: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await response
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

/** @throws {Error} an item of a bulk request failed, with another status than those */
export function checkItems(items: readonly estypes.BulkResponseItem[], except: readonly number[] = []): void {
  for (const { status, error } of items) {
    if (error && !except.includes(status)) throw toFailure(status, `a chunk was not written, status ${status}, ${error.type}`)
  }
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
