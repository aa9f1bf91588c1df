import { gatewayOperation } from '../../schema/operations.ts'
import * as operations from '../contract/chat.ts'
import { RATE_LIMITS, rateLimitHeaders } from '../http/rate-limits.ts'
import { type Call, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { PRICE, type PriceData, toPrice } from './prices.ts'

const FACTS = 'inputTokens maxOutputTokens amount isCovered'
const QUOTE = gatewayOperation(`query ChatQuote($request: ChatProtocolRequest!) { quoteChatCompletion(request: $request) {
  ${FACTS} ${RATE_LIMITS} models { ${FACTS} heldInputTokens rateCardVersion model { id ${PRICE} } } } }`)

interface Facts {
  readonly inputTokens: number
  readonly maxOutputTokens: number
  readonly amount: string
  readonly isCovered: boolean
}
interface QuoteData extends Facts {
  readonly models: readonly (Facts & {
    readonly heldInputTokens: number
    readonly rateCardVersion: string
    readonly model: { readonly id: string; readonly price: PriceData | null }
  })[]
}

/**
 * Returns the largest hold that a request of the chat protocol would need.
 * @throws {KisError} the error with which the request itself would be refused
 */
export async function quoteChat({ execute, setHeaders }: Call, request: JsonObject): Promise<QuoteData> {
  const { quoteChatCompletion } = await execute(QUOTE, { request })
  setHeaders(rateLimitHeaders(quoteChatCompletion.rateLimits))
  return quoteChatCompletion
}

const toFacts = ({ inputTokens, maxOutputTokens, amount, isCovered }: Facts) => ({
  input_tokens: inputTokens,
  max_output_tokens: maxOutputTokens,
  amount_usd: amount,
  is_covered: isCovered,
})

export const quoteRoutes: readonly Route[] = [
  route({
    operation: operations.quoteChatCompletion,
    body: 'chat',
    checkedBehind: true,
    inference: true,
    async handle(call) {
      const quote = await quoteChat(call, call.body)
      return ok({
        object: 'chat.completion.quote',
        ...toFacts(quote),
        models: quote.models.map(({ model, heldInputTokens, rateCardVersion, ...facts }) => ({
          id: model.id,
          ...toFacts(facts),
          held_input_tokens: heldInputTokens,
          rate_card_version: rateCardVersion,
          price: toPrice(model.price),
        })),
      })
    },
  }),
]
