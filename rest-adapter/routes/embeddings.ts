import { gatewayOperation } from '../../schema/operations.ts'
import { factHeaders } from '../chat/chat-operations.ts'
import * as operations from '../contract/models.ts'
import { RATE_LIMITS } from '../http/rate-limits.ts'
import { ok, type Route, route } from '../http/route.ts'

const embeddings = <const Form extends string>(form: Form) =>
  gatewayOperation(`mutation Embeddings($input: EmbeddingsInput!) {
  createEmbeddings(input: $input) { model { id } promptTokens replayed ${RATE_LIMITS} data { index embedding: ${form} } } }`)

const OPERATIONS = { float: embeddings('float'), base64: embeddings('base64') }

export const embeddingRoutes: readonly Route[] = [
  route({
    operation: operations.createEmbeddings,
    inference: true,
    async handle({ execute, body, setHeaders, idempotencyKey }) {
      const form = (body.encoding_format ?? 'float') as keyof typeof OPERATIONS
      const input = {
        model: body.model,
        input: body.input,
        encodingFormat: form.toUpperCase(),
        dimensions: body.dimensions,
        user: body.user,
        idempotencyKey,
      }
      const { createEmbeddings } = await execute(OPERATIONS[form], { input })
      const { model, promptTokens, data } = createEmbeddings
      setHeaders(factHeaders(createEmbeddings))
      return ok({
        object: 'list',
        data: data.map(({ index, embedding }) => ({ object: 'embedding', index, embedding: embedding! })),
        model: model?.id ?? body.model,
        usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
      })
    },
  }),
]
