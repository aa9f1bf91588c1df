import { ModelNotFound } from '../../subgraphs/common/errors.ts'
import { PRICE, type PriceData, toPrice } from '../chat/prices.ts'
import { idOf, wholeList } from '../http/lists.ts'
import { ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const MODEL = `id kind vendor residency supportsVision supportsTools supportsResponseSchema supportsReasoning contextWindow ${PRICE} createdAt`

interface ModelData {
  readonly id: string
  readonly kind: string
  readonly vendor: string
  readonly residency: string
  readonly supportsVision: boolean
  readonly supportsTools: boolean
  readonly supportsResponseSchema: boolean
  readonly supportsReasoning: boolean
  readonly contextWindow: number | null
  readonly price: PriceData | null
  readonly createdAt: string
}

const LIST = `query Models { models { ${MODEL} } }`
const GET = `query Model($id: ID!) { model(id: $id) { ${MODEL} } }`

function toModel(data: ModelData) {
  return {
    id: data.id,
    object: 'model',
    created: unixSeconds(data.createdAt),
    created_at: unixSeconds(data.createdAt),
    owned_by: data.vendor,
    kind: data.kind.toLowerCase(),
    residency: data.residency.toLowerCase(),
    supports_vision: data.supportsVision,
    supports_tools: data.supportsTools,
    supports_response_schema: data.supportsResponseSchema,
    supports_reasoning: data.supportsReasoning,
    context_window: data.contextWindow,
    price: toPrice(data.price),
  }
}

export const modelRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/models',
    inference: true,
    async handle({ ask }) {
      const { models } = await ask<{ models: readonly ModelData[] }>(LIST)
      return ok(wholeList(models.map(toModel), idOf))
    },
  },
  {
    method: 'GET',
    path: '/v1/models/{id}',
    slashes: true,
    inference: true,
    async handle({ ask, params }) {
      const { model } = await ask<{ model: ModelData | null }>(GET, { id: params.id })
      if (!model) throw new ModelNotFound(params.id!)
      return ok(toModel(model))
    },
  },
]
