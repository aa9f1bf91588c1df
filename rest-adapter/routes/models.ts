import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { ModelNotFound } from '../../subgraphs/common/errors.ts'
import { PRICE, toPrice } from '../chat/prices.ts'
import * as operations from '../contract/models.ts'
import { readId, wholeList } from '../http/lists.ts'
import { ok, type Route, route } from '../http/route.ts'
import { lowerCase, unixSeconds } from '../http/values.ts'

export const MODEL = `id kind vendor residency supportsVision supportsTools supportsResponseSchema supportsReasoning contextWindow ${PRICE} createdAt`

type ModelData = Selected<'Model', typeof MODEL>

const LIST = gatewayOperation(`query Models { models { ${MODEL} } }`)
const GET = gatewayOperation(`query Model($id: ID!) { model(id: $id) { ${MODEL} } }`)

export function toModel(data: ModelData): operations.Model {
  return {
    id: data.id,
    object: 'model',
    created: unixSeconds(data.createdAt),
    created_at: unixSeconds(data.createdAt),
    owned_by: data.vendor,
    kind: lowerCase(data.kind),
    residency: lowerCase(data.residency),
    supports_vision: data.supportsVision,
    supports_tools: data.supportsTools,
    supports_response_schema: data.supportsResponseSchema,
    supports_reasoning: data.supportsReasoning,
    context_window: data.contextWindow,
    price: toPrice(data.price),
  }
}

export const modelRoutes: readonly Route[] = [
  route({
    operation: operations.listModels,
    inference: true,
    async handle({ execute }) {
      const { models } = await execute(LIST)
      return ok(wholeList(models.map(toModel), readId))
    },
  }),
  route({
    operation: operations.getModel,
    slashes: true,
    inference: true,
    async handle({ execute, params }) {
      const { model } = await execute(GET, { id: params.id })
      if (!model) throw new ModelNotFound(params.id!)
      return ok(toModel(model))
    },
  }),
]
