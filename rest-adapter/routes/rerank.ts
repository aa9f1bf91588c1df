import { gatewayOperation } from '../../schema/operations.ts'
import { factHeaders } from '../chat/chat-operations.ts'
import { RATE_LIMITS } from '../http/rate-limits.ts'
import { type Call, ok, type Route } from '../http/route.ts'

const RERANK = gatewayOperation(`mutation Rerank($input: RerankInput!) {
  createRerank(input: $input) { model { id } tokens searchUnits replayed ${RATE_LIMITS} results { index score } } }`)

const NAMES = { topN: 'top_n' }

/** Answers as Cohere and as Jina do: each client reads its own fields. */
async function handle({ ask, body, ids, setHeaders, idempotencyKey }: Call) {
  const documents = (body.documents as readonly (string | { readonly text: string })[]).map((document) =>
    typeof document === 'string' ? document : document.text,
  )
  const input = { model: body.model, query: body.query, documents, topN: body.top_n, idempotencyKey }
  const { createRerank } = await ask(RERANK, { input }, NAMES)
  const { model, tokens, searchUnits, results } = createRerank
  setHeaders(factHeaders(createRerank))
  return ok({
    id: ids('rerank'),
    object: 'rerank',
    model: model?.id ?? body.model,
    results: results.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(body.return_documents === true && { document: { text: documents[index] } }),
    })),
    usage: { prompt_tokens: tokens, total_tokens: tokens, search_units: searchUnits },
    meta: { api_version: { version: '2' }, billed_units: { search_units: searchUnits }, tokens: { input_tokens: tokens } },
  })
}

export const rerankRoutes: readonly Route[] = [
  { method: 'POST', path: '/v1/rerank', inference: true, handle },
  { method: 'POST', path: '/v2/rerank', inference: true, handle },
]
