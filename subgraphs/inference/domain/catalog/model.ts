import { z } from 'zod'
import {
  aboveZero,
  choices,
  date,
  mapping,
  names,
  oneOf,
  optional,
  reading,
  requiredText,
  text,
  whole,
} from '../../../common/catalog/fields.ts'
import { MAX_TOKENS, PRICE, type Price, toPrice } from './price.ts'

const FEATURES = ['vision', 'tools', 'response_schema', 'reasoning', 'prompt_cache', 'token_input', 'dimensions', 'streaming'] as const
export type Feature = (typeof FEATURES)[number]

const MODEL_KINDS = ['chat', 'embedding', 'transcription', 'rerank'] as const

export interface ModelEntry {
  readonly id: string
  /** Other names that clients may send as `model`. */
  readonly aliases: readonly string[]
  readonly engine: string
  readonly engineModel: string
  readonly kind: (typeof MODEL_KINDS)[number]
  readonly supports: readonly Feature[]
  readonly contextWindow: number | null
  readonly maxOutputTokens: number | null
  /** Most tokens of one image, and of one with `detail: low` if the vendor has a rule for it. */
  readonly imageTokens: number | null
  readonly lowImageTokens: number | null
  readonly dimensions: number | null
  readonly markTokens: number
  readonly queryPrefix: string
  readonly passagePrefix: string
  readonly cosineSpread: number | null
  readonly price: Price
  /** Ids of models of the same kind, in the order in which they are tried. Their own fallbacks are not tried. */
  readonly fallbacks: readonly string[]
  readonly created: Date | null
}

/** Ids of agents and workflows start with these prefixes, so a model's id may not. */
const RESERVED_PREFIX = /^(agent|workflow)\//
const MAX_NAME_LENGTH = 200
const MAX_DIMENSIONS = 65_536
/** A limit, because the caller waits for each fallback that fails. */
const MAX_FALLBACKS = 8
/** A limit far above what a model needs. */
const MAX_ALIASES = 32
const PRICES_OF_KIND = { chat: ['input', 'output'], embedding: ['input'], transcription: ['audio'], rerank: [] } as const

const TOKENS = optional(whole(1, MAX_TOKENS))

export const MODEL = mapping({
  id: requiredText(),
  kind: oneOf(MODEL_KINDS),
  engine: requiredText(),
  engine_model: optional(text()),
  supports: choices(FEATURES),
  context_window: TOKENS,
  max_output_tokens: TOKENS,
  image_tokens: TOKENS,
  low_image_tokens: TOKENS,
  dimensions: optional(whole(1, MAX_DIMENSIONS)),
  mark_tokens: optional(whole(0, 64)),
  query_prefix: optional(text()),
  passage_prefix: optional(text()),
  cosine_spread: optional(aboveZero()),
  aliases: names(),
  fallbacks: names(),
  created: date(),
  price: z.preprocess((price) => price ?? {}, PRICE),
})
  .superRefine(({ id }, context) => {
    for (const message of problemsOfName(id)) context.addIssue({ code: 'custom', path: ['id'], message })
  }, reading('id'))
  .superRefine(
    ({ kind, aliases }, context) => {
      const problem = (message: string) => context.addIssue({ code: 'custom', path: ['aliases'], message })
      for (const alias of aliases) for (const message of problemsOfName(alias)) problem(message)
      if (aliases.includes('')) problem('has an empty name')
      if (aliases.length > MAX_ALIASES) problem(`has more than ${MAX_ALIASES} names`)
      if (kind === 'embedding' && aliases.length > 0)
        problem('is not for embeddings: a name that moves to another model would mix their vectors; name the model itself so')
    },
    reading('kind', 'aliases'),
  )
  .superRefine(
    ({ kind, fallbacks }, context) => {
      const problem = (message: string) => context.addIssue({ code: 'custom', path: ['fallbacks'], message })
      if (kind === 'embedding' && fallbacks.length > 0) problem('is not for embeddings: vectors of two models cannot be compared')
      if (kind === 'transcription' && fallbacks.length > 0) problem('is for chat and rerank models only')
      if (fallbacks.length > MAX_FALLBACKS) problem(`has more than ${MAX_FALLBACKS} models`)
    },
    reading('kind', 'fallbacks'),
  )
  .superRefine(
    ({ kind, supports, price }, context) => {
      const problem = (message: string) => context.addIssue({ code: 'custom', path: ['supports'], message })
      if (kind !== 'transcription' && supports.includes('streaming'))
        problem('has `streaming`, which is for transcription models: all chat models stream')
      if (supports.includes('prompt_cache') && !isProvided(price?.cache_write))
        problem('has `prompt_cache`, which needs the price of writing to the cache: `cache_write`')
    },
    reading('kind', 'supports'),
  )
  .superRefine((model, context) => {
    const missing = (path: readonly string[], more = '') =>
      context.addIssue({ code: 'custom', path: [...path], message: `is missing${more}` })
    if (model.kind === 'embedding' && !isProvided(model.dimensions)) missing(['dimensions'], ': the dimensions of the vectors')
    if (model.kind === 'chat' && !isProvided(model.max_output_tokens) && !isProvided(model.context_window))
      missing(['max_output_tokens'], ': without it or context_window the most that a call can cost is unknown')
    for (const unit of PRICES_OF_KIND[model.kind]) if (!isProvided(model.price?.[unit])) missing(['price', unit])
    if (model.kind === 'rerank' && isProvided(model.price?.search) === isProvided(model.price?.input))
      context.addIssue({ code: 'custom', path: ['price'], message: 'has one of `search` and `input` for a rerank model' })
    if (model.kind !== 'transcription') return
    const { input, output, tiers } = model.price ?? {}
    if (isProvided(input) !== isProvided(output))
      missing(['price', isProvided(input) ? 'output' : 'input'], ': a model that is paid by the token has both')
    if (Array.isArray(tiers) && tiers.length > 0)
      context.addIssue({ code: 'custom', path: ['price', 'tiers'], message: 'is for models that are paid by the token' })
  }, reading('kind'))

export function toModelEntry(fields: z.output<typeof MODEL>): ModelEntry {
  return {
    id: fields.id,
    kind: fields.kind,
    price: toPrice(fields.price),
    engine: fields.engine,
    engineModel: fields.engine_model ?? fields.id,
    supports: fields.supports,
    contextWindow: fields.context_window,
    maxOutputTokens: fields.max_output_tokens,
    imageTokens: fields.image_tokens,
    lowImageTokens: fields.low_image_tokens,
    dimensions: fields.dimensions,
    markTokens: fields.mark_tokens ?? 2,
    queryPrefix: fields.query_prefix ?? '',
    passagePrefix: fields.passage_prefix ?? '',
    cosineSpread: fields.cosine_spread,
    aliases: fields.aliases,
    fallbacks: fields.fallbacks,
    created: fields.created,
  }
}

function problemsOfName(name: string): readonly string[] {
  return [
    ...(name.length > MAX_NAME_LENGTH ? [`is longer than ${MAX_NAME_LENGTH} characters`] : []),
    ...(RESERVED_PREFIX.test(name) ? ['begins with a prefix reserved for agents and workflows'] : []),
  ]
}

/** True if there is a value, even an invalid one. */
function isProvided(value: unknown): boolean {
  return (value ?? null) !== null
}
