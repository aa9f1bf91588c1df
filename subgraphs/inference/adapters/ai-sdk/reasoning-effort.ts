import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { isAbsent, refuse } from '../../../common/check.ts'
import type { ChatCall, ProtocolObject } from '../../ports/engines.ts'
import type { Vendor } from './vendors.ts'

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
type Effort = (typeof EFFORTS)[number]

/** Claude 4.5 and older take a budget of thinking tokens; newer ones take an effort. */
const THINKS_BY_BUDGET = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|[@:-](?!\d{1,2}(?:\D|$))))/
/** With a high effort, Nova 2 accepts no bound of the answer's length. */
const UNBOUNDED_AT_HIGH_EFFORT = /nova-2/
/** Shares of the answer's bound, by which the SDK divides the model's own. */
const BUDGET_SHARES: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 0.9,
}
/** The API's minimum, in tokens. */
const MIN_BUDGET = 1_024
/** Used if neither the request nor the catalog bounds the answer. */
const DEFAULT_OUTPUT_TOKENS = 32_000

/**
 * Sets `reasoning_effort` and the answer's bound together: the protocol's bound includes the reasoning, and the hold
 * covers it, while the SDK adds a budget to its bound. Without a bound in the request the model's own is sent, because
 * the hold covers that.
 * @throws {KisError} `invalid_request`: the bound leaves no room to think
 */
export function chooseReasoning(
  vendor: Vendor,
  call: ChatCall,
  request: ProtocolObject,
  prompt: LanguageModelV4Prompt,
  needs: { readonly forTool: boolean; readonly forJson: boolean },
): Pick<LanguageModelV4CallOptions, 'reasoning' | 'maxOutputTokens' | 'providerOptions'> {
  const requested = (request.max_completion_tokens ?? request.max_tokens ?? null) as number | null
  const limit = requested ?? call.maxOutputTokens
  const limited = limit === null ? {} : { maxOutputTokens: limit }
  const effort = readEffort(request)
  if (effort === null) return limited
  const thinksByBudget = THINKS_BY_BUDGET.test(call.engineModel) && vendor.thinking !== undefined
  // Claude does not think when it must call a tool, which is also how the SDK asks older models for a schema on
  // Bedrock.
  const mustCallTool = needs.forTool || (vendor.kind === 'bedrock' && thinksByBudget && needs.forJson)
  if (mustCallTool && call.engineModel.includes('claude') && effort !== 'none') {
    call.warn('reasoning_effort')
    return limited
  }
  if (thinksByBudget) {
    if (effort === 'none') return limited
    const total = limit ?? DEFAULT_OUTPUT_TOKENS
    const budget = Math.max(MIN_BUDGET, Math.floor(total * BUDGET_SHARES[effort]))
    if (budget < total && !continuesUnsignedTurn(prompt))
      return { maxOutputTokens: total - budget, providerOptions: vendor.thinking!(budget) }
    call.warn('reasoning_effort')
    return limited
  }
  if (UNBOUNDED_AT_HIGH_EFFORT.test(call.engineModel) && requested !== null && ['high', 'xhigh', 'max'].includes(effort)) {
    call.warn('reasoning_effort')
    return { ...limited, reasoning: 'medium' }
  }
  return { ...limited, reasoning: effort === 'max' ? 'xhigh' : effort }
}

function readEffort({ reasoning_effort: effort }: ProtocolObject): Effort | null {
  if (isAbsent(effort)) return null
  if (EFFORTS.includes(effort as Effort)) return effort as Effort
  return refuse(
    'unsupported_value',
    'reasoning_effort',
    `'reasoning_effort' must be one of ${EFFORTS.map((each) => `'${each}'`).join(', ')}.`,
  )
}

/**
 * Whether the model continues after tool calls whose reasoning the caller did not send back. Models that think by
 * budget refuse such a request.
 */
function continuesUnsignedTurn(prompt: LanguageModelV4Prompt): boolean {
  const start = prompt.findLastIndex(({ role }) => role === 'user')
  return prompt
    .slice(start + 1)
    .some(
      (message) =>
        message.role === 'assistant' &&
        message.content.some(({ type }) => type === 'tool-call') &&
        message.content[0]?.type !== 'reasoning',
    )
}
