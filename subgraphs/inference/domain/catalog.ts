import { createHash } from 'node:crypto'
import type { RateCard, Rates } from '../ports/billing.ts'
import type { CatalogFile } from './catalog/catalog-file.ts'
import type { Feature, ModelEntry } from './catalog/model.ts'
import type { TokenPrices } from './catalog/price.ts'

export type ModelKind = ModelEntry['kind']
export type Residency = 'local' | 'regional' | 'cloud'

/** A model that the operator offers. */
export interface Model {
  /** The name that clients send as `model`. */
  readonly id: string
  /** Other names that clients may send as `model`. */
  readonly aliases: readonly string[]
  readonly kind: ModelKind
  readonly engine: string
  /** The name that the engine gets as `model`. */
  readonly engineModel: string
  readonly residency: Residency
  /**
   * False while the model's engine is off. The model is then neither listed nor callable, but references to it still
   * resolve.
   */
  readonly available: boolean
  /** The engine counts tokens with the model's own tokenizer, so its counts are exact enough to refuse a text. */
  readonly countsExactly: boolean
  readonly supports: ReadonlySet<Feature>
  readonly contextWindow: number | null
  readonly maxOutputTokens: number | null
  /** Most tokens of one image. */
  readonly imageTokens: number
  /** Most tokens of one image with `detail: low`. */
  readonly lowImageTokens: number
  /** Dimensions of the vectors. 0: the model does not embed. */
  readonly dimensions: number
  /** Most tokens of one text to embed, including special tokens and the prefix. */
  readonly maxTextTokens: number
  /** Special tokens that the model adds around each text. */
  readonly markTokens: number
  readonly queryPrefix: string
  readonly passagePrefix: string
  readonly cosineSpread: number | null
  readonly price: ModelEntry['price']
  readonly rateCard: RateCard
  /** Ids of the models that are tried in order if this model fails. */
  readonly fallbacks: readonly string[]
  readonly createdAt: Date
}

export interface Catalog {
  /** In order of their ids. */
  readonly models: readonly Model[]
  /** Finds a model by id or alias. */
  find(name: string): Model | undefined
}

/**
 * `created` of a model to which the catalog assigns none. It is the same in every process and after every start,
 * because clients treat a model with another time as another model.
 */
const UNDATED = new Date('2026-01-01T00:00:00.000Z')

/** The highest number among the open vision models (Qwen2-VL's processor: 16,384). The catalog can set fewer. */
const DEFAULT_IMAGE_TOKENS = 16_384
/** The default limits of embedding models: BERT's 512 for models that run here, OpenAI's 8,192 for servers. */
const DEFAULT_TEXT_TOKENS = { embedded: 512, server: 8_192 } as const

/** Builds the catalog from the entries of the file. */
export function buildCatalog(file: Pick<CatalogFile, 'engines' | 'models'>): Catalog {
  const engines = new Map(file.engines.map((engine) => [engine.name, engine]))
  const models = file.models
    .map((entry): Model => {
      const engine = engines.get(entry.engine)!
      return {
        ...entry,
        residency: engine.badge,
        available: engine.on,
        countsExactly: engine.kind === 'embedded',
        supports: new Set(entry.supports),
        imageTokens: entry.imageTokens ?? DEFAULT_IMAGE_TOKENS,
        lowImageTokens: entry.lowImageTokens ?? entry.imageTokens ?? DEFAULT_IMAGE_TOKENS,
        dimensions: entry.dimensions ?? 0,
        maxTextTokens: entry.contextWindow ?? DEFAULT_TEXT_TOKENS[engine.kind === 'embedded' ? 'embedded' : 'server'],
        rateCard: toRateCard(entry.price),
        createdAt: entry.created ?? UNDATED,
      }
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  const byName = new Map(models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model] as const)))
  return { models, find: (name) => byName.get(name) }
}

function toRateCard(price: ModelEntry['price']): RateCard {
  // The file's price is for a minute, the rate card's for a million milliseconds: 50/3 minutes, rounded up.
  const audioMilliseconds = ((price.audio ?? 0n) * 50n + 2n) / 3n
  // The file's price is for a thousand units, the rate card's for a million.
  const searchUnits = (price.search ?? 0n) * 1_000n
  return {
    version: createHash('sha256').update(listPrices(price).join(' ')).digest('hex').slice(0, 12),
    ...toTokenRates(price),
    audioMilliseconds,
    searchUnits,
    tiers: price.tiers.map((tier) => ({
      aboveInputTokens: tier.aboveInputTokens,
      ...toTokenRates(tier),
      audioMilliseconds,
      searchUnits,
    })),
  }
}

function toTokenRates({ input, cachedInput, cacheWrite, output }: TokenPrices): Omit<Rates, 'audioMilliseconds' | 'searchUnits'> {
  return {
    inputTokens: input ?? 0n,
    cachedInputTokens: cachedInput ?? 0n,
    cacheWriteTokens: cacheWrite ?? 0n,
    outputTokens: output ?? 0n,
  }
}

/** Lists everything that a charge depends on, in a fixed order. */
function listPrices({ input, cachedInput, cacheWrite, output, audio, search, tiers }: ModelEntry['price']) {
  const tierFacts = tiers.flatMap((tier) => [tier.aboveInputTokens, tier.input, tier.cachedInput, tier.cacheWrite, tier.output])
  // Cards without this price retain the version that they had before the price existed.
  const searchFacts = search === null ? [] : [`search ${search}`]
  return [input, cachedInput, cacheWrite, output, audio, ...tierFacts, ...searchFacts]
}
