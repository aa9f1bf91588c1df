import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { factHeaders } from '../chat/chat-operations.ts'
import { PRICE, toPrice } from '../chat/prices.ts'
import * as operations from '../contract/models.ts'
import { RATE_LIMITS, rateLimitHeaders } from '../http/rate-limits.ts'
import { type Call, type JsonObject, ok, type Route, route } from '../http/route.ts'

const RERANK = gatewayOperation(`mutation Rerank($input: RerankInput!) {
  createRerank(input: $input) { model { id } tokens searchUnits replayed ${RATE_LIMITS} results { index score } } }`)

const QUOTED = 'tokens searchUnits amount isCovered'
const QUOTE = gatewayOperation(`query RerankQuote($input: RerankQuoteInput!) { quoteRerank(input: $input) {
  ${QUOTED} ${RATE_LIMITS} models { ${QUOTED} heldTokens heldSearchUnits rateCardVersion model { id ${PRICE} } } } }`)

const NAMES = { topN: 'top_n' }

/** Responds in the formats of Cohere and of Jina at once: each client reads its own fields. */
async function handle({ execute, body, ids, setHeaders, idempotencyKey }: Call) {
  const documents = readDocuments(body)
  const input = { model: body.model, query: body.query, documents, topN: body.top_n, idempotencyKey }
  const { createRerank } = await execute(RERANK, { input }, NAMES)
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

async function handleQuote({ execute, body, setHeaders }: Call) {
  const { quoteRerank } = await execute(QUOTE, { input: { model: body.model, query: body.query, documents: readDocuments(body) } })
  setHeaders(rateLimitHeaders(quoteRerank.rateLimits))
  return ok({
    object: 'rerank.quote',
    ...toFacts(quoteRerank),
    models: quoteRerank.models.map(({ model, heldTokens, heldSearchUnits, rateCardVersion, ...facts }) => ({
      id: model.id,
      ...toFacts(facts),
      held_tokens: heldTokens,
      held_search_units: heldSearchUnits,
      rate_card_version: rateCardVersion,
      price: toPrice(model.price),
    })),
  })
}

function readDocuments(body: JsonObject): readonly string[] {
  const documents = body.documents as readonly (string | { readonly text: string })[]
  return documents.map((document) => (typeof document === 'string' ? document : document.text))
}

function toFacts({ tokens, searchUnits, amount, isCovered }: Selected<'RerankQuote', typeof QUOTED>) {
  return { tokens, search_units: searchUnits, amount_usd: amount, is_covered: isCovered }
}

export const rerankRoutes: readonly Route[] = [
  route({ operation: operations.createRerank, inference: true, handle }),
  route({ operation: operations.quoteRerank, inference: true, handle: handleQuote }),
  route({ operation: operations.createRerankV2, inference: true, handle }),
]
