import type { Log } from '../process/log.ts'
import { formatUsd } from '../usd.ts'
import type { Metrics } from './metrics.ts'
import type { Facts } from './request-facts.ts'

const NANO_USD = 1e9

/** One request, or one operation over a socket, at its end. */
interface EndedRequest {
  readonly requestId: string
  readonly traceId: string
  /** The template of the path, such as `/v1/files/:id`; `socket` for an operation over one. */
  readonly route: string
  readonly method: string
  /** The HTTP status. 499: the client disconnected before the response started. */
  readonly status: number
  readonly durationMs: number
  /** Milliseconds until the response started. */
  readonly firstByteMs: number
  /** True: the client disconnected before the end of the response. */
  readonly hasLeft: boolean
  readonly facts: Facts | undefined
}

interface RequestLineOptions {
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly metrics: Metrics
  readonly hasAccessLog: boolean
  /** Requests whose response starts later than this are logged with a breakdown of their time. Null: none. */
  readonly slowMs: number | null
  /** Whether metrics distinguish organizations. */
  readonly byOrganization: boolean
}

/** Writes the log lines of each request. */
export class RequestLines {
  readonly #options: RequestLineOptions

  constructor(options: RequestLineOptions) {
    this.#options = options
  }

  ended(request: EndedRequest): void {
    const { log, hasAccessLog, slowMs } = this.#options
    const isSlow = slowMs !== null && request.firstByteMs >= slowMs
    const isInner = request.facts?.isOfService === true
    if (!isInner) this.#count(request)
    const isLogged = hasAccessLog && !isInner
    if (!isLogged && !isSlow) return
    const line = toLine(request)
    if (isLogged) log.info(line, 'request')
    if (isSlow) log.warn({ ...line, ...whereTimeWent(request) }, 'slow request')
  }

  #count({ facts }: EndedRequest): void {
    const { metrics, byOrganization } = this.#options
    if (!byOrganization || facts?.organizationId === undefined) return
    const { organizationId, inputTokens, outputTokens, costNanoUsd } = facts
    metrics.add('kis_organization_requests_total', 1, organizationId)
    if (inputTokens + outputTokens > 0) metrics.add('kis_organization_tokens_total', inputTokens + outputTokens, organizationId)
    if (costNanoUsd > 0n) metrics.add('kis_organization_charged_usd_total', Number(costNanoUsd) / NANO_USD, organizationId)
  }
}

function toLine({ requestId, traceId, route, method, status, durationMs, firstByteMs, hasLeft, facts }: EndedRequest) {
  const { organizationId, apiKeyId, operation, error, inputTokens = 0, outputTokens = 0, costNanoUsd = 0n } = facts ?? {}
  const isCharged = inputTokens + outputTokens > 0 || costNanoUsd > 0n
  return {
    requestId,
    ...(traceId && { traceId }),
    ...(organizationId && { organizationId }),
    ...(apiKeyId && { apiKeyId }),
    method,
    route,
    ...(operation && { operation }),
    status,
    ...(error && { error }),
    ...(hasLeft && { clientLeft: true }),
    durationMs: Math.round(durationMs),
    firstByteMs: Math.round(firstByteMs),
    ...(isCharged && { inputTokens, outputTokens, costUsd: formatUsd(costNanoUsd) }),
  }
}

function whereTimeWent({ facts }: EndedRequest) {
  const { fetches = [], fetchCount = 0 } = facts ?? {}
  return {
    fetches: fetches.map(({ name, atMs, tookMs }) => `${name} at ${atMs} ms took ${tookMs} ms`),
    fetchCount,
  }
}
