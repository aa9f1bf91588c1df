import type { Clock } from '../../../common/process/clock.ts'
import type { RerankProtocol } from '../../domain/catalog/engine.ts'
import { MAX_RESPONSE_BYTES } from '../../domain/engines/response-limits.ts'
import type { RerankEngine } from '../../ports/engines.ts'
import { EngineErrors, type OnOperatorFault } from '../vendor/engine-errors.ts'
import { TIMEOUTS, type Timeouts } from '../vendor/limits.ts'
import { parseResponse, Upstream } from '../vendor/upstream.ts'
import { PROTOCOLS } from './protocols.ts'

export interface RerankEngineOptions {
  /** The engine's name in the catalog, for messages. */
  readonly name: string
  /** Includes the path, as in `https://api.cohere.com/v2`. */
  readonly baseUrl: string
  readonly apiKey: string | null
  readonly protocol: RerankProtocol
  readonly clock: Clock
  /** Most documents of one call, if the server accepts fewer than usual. */
  readonly maxBatch?: number
  readonly timeouts?: Timeouts
  readonly onOperatorFault?: OnOperatorFault
}

/** Creates an engine for a server of rerankers with the protocol of Cohere, Jina or text-embeddings-inference. */
export function createRerankEngine(options: RerankEngineOptions): { readonly rerank: RerankEngine } & AsyncDisposable {
  const { name, apiKey, clock, timeouts = TIMEOUTS, onOperatorFault } = options
  const protocol = PROTOCOLS[options.protocol]
  const baseUrl = new URL(options.baseUrl)
  const errors = new EngineErrors(name, apiKey ? [apiKey, baseUrl.host] : [baseUrl.host], clock, onOperatorFault)
  const upstream = new Upstream(baseUrl, apiKey ? ['authorization', `Bearer ${apiKey}`] : [], timeouts, errors)
  return {
    rerank: {
      maxBatch: Math.min(options.maxBatch ?? protocol.maxBatch, protocol.maxBatch),

      async rerank({ engineModel, requestId }, query, documents, signal) {
        const body = JSON.stringify(protocol.toBody(engineModel, query, documents))
        const response = parseResponse(await upstream.post(protocol.route, body, requestId, MAX_RESPONSE_BYTES, signal), errors)
        const { results, scoreField, tokens, searchUnits } = protocol.read(response)
        return { scores: readScores(results, scoreField, documents.length, errors), tokens, searchUnits }
      },
    },
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

/** @throws {KisError} `engine_error`: not every document has exactly one finite score */
function readScores(results: unknown, scoreField: string, count: number, errors: EngineErrors): readonly number[] {
  if (!Array.isArray(results) || results.length !== count)
    throw errors.invalidResponse(`returned ${Array.isArray(results) ? results.length : 'no'} scores for ${count} documents`)
  const scores = new Array<number | undefined>(count)
  for (const result of results) {
    const { index, [scoreField]: score } = (result ?? {}) as Readonly<Record<string, unknown>>
    if (!Number.isInteger(index) || !((index as number) >= 0 && (index as number) < count) || scores[index as number] !== undefined)
      throw errors.invalidResponse('returned scores with wrong indices')
    if (typeof score !== 'number' || !Number.isFinite(score)) throw errors.invalidResponse('returned a score that is not a number')
    scores[index as number] = score
  }
  return scores as number[]
}
