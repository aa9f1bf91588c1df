import { readFileSync } from 'node:fs'
import { type Document, LineCounter, parseDocument, visit } from 'yaml'
import type { Plan } from '../identity/principal.ts'
import { ConfigError } from '../process/config-error.ts'
import { parseUsd } from '../usd.ts'

export type Badge = 'local' | 'regional' | 'cloud'

export const ENGINE_KINDS = ['openai', 'azure', 'anthropic', 'google', 'bedrock', 'mistral', 'cohere', 'embedded'] as const
export type EngineKind = (typeof ENGINE_KINDS)[number]

/** One engine of the file. A setting that comes out empty is null here. */
export interface EngineEntry {
  readonly name: string
  readonly kind: EngineKind
  readonly badge: Badge
  /** Null: the vendor's own address. */
  readonly baseUrl: string | null
  readonly apiKey: string | null
  /** Of `bedrock`: the AWS region, and keys that sign where there is no `apiKey`. */
  readonly region: string | null
  readonly accessKeyId: string | null
  readonly secretAccessKey: string | null
  readonly sessionToken: string | null
  /** Of `azure`: the name before `.openai.azure.com`, and the dated version whose addresses name the deployment; null is the v1 API. */
  readonly resource: string | null
  readonly apiVersion: string | null
  /** Most texts of one embeddings call, where the server takes fewer than the protocol's 2,048. */
  readonly maxBatch: number | null
  /**
   * Whether the engine may be given addresses of images to fetch. An engine that is not `cloud` is where a caller's address can lead inside: the
   * service fetches for it, unless the line of an `openai` engine says otherwise.
   */
  readonly fetchesImages: boolean
  /** Longest waits, in milliseconds; null: the engine's own. For a connection, for the first piece of a streamed answer, between two of its pieces. */
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly idleMs: number | null
  /** Settings that it needs and that came out empty: they turn it off. */
  readonly missing: readonly string[]
  readonly on: boolean
}

export const FEATURES = [
  'vision',
  'tools',
  'response_schema',
  'reasoning',
  'prompt_cache',
  'token_input',
  'dimensions',
  'streaming',
] as const
export type Feature = (typeof FEATURES)[number]

export interface ModelEntry {
  readonly id: string
  /** Other names that clients may send as `model`. */
  readonly aliases: readonly string[]
  readonly engine: string
  readonly engineModel: string
  readonly kind: 'chat' | 'embedding' | 'transcription'
  readonly supports: readonly Feature[]
  readonly contextWindow: number | null
  readonly maxOutputTokens: number | null
  /** Most tokens of one image; and of one with `detail: low`, where the vendor has a rule for it. */
  readonly imageTokens: number | null
  readonly lowImageTokens: number | null
  readonly dimensions: number | null
  readonly markTokens: number
  readonly queryPrefix: string
  readonly passagePrefix: string
  readonly cosineSpread: number | null
  readonly price: Price
  /** Ids of models of the same kind, in the order in which they are asked; their own fallbacks are not. */
  readonly fallbacks: readonly string[]
  readonly created: Date | null
}

/** Nano-USD per million tokens; null does not apply. Where the file has none for cached or written input, it costs what other input does. */
export interface TokenPrices {
  readonly input: bigint | null
  readonly cachedInput: bigint | null
  readonly cacheWrite: bigint | null
  readonly output: bigint | null
}

export interface Price extends TokenPrices {
  /** Nano-USD per minute; null does not apply. */
  readonly audio: bigint | null
  /** Prices of the whole call once its input, cached or not, is longer, by rising length. */
  readonly tiers: readonly PriceTier[]
}

export interface PriceTier extends TokenPrices {
  readonly aboveInputTokens: number
}

/** What an organization may use, and what of it only the gateway judges. */
export interface CatalogPlan extends Plan {
  /** Most nodes that the answer to one GraphQL operation may have. */
  readonly operationNodes: number
}

export interface CatalogFile {
  readonly engines: readonly EngineEntry[]
  readonly models: readonly ModelEntry[]
  /** The file's plans and, unless it has one of that name, the built-in `self-hosted`. */
  readonly plans: readonly CatalogPlan[]
}

/** Every problem of the file, each with its line and path. */
export class CatalogError extends ConfigError {}

/** A list of a hundred runs with all their parts has 8,700; 150,000 held the event loop for 5 s. */
export const DEFAULT_OPERATION_NODES = 10_000

/** The plan of the bootstrap organization: 10 GiB, a million vectors, files of 25 MiB. */
const SELF_HOSTED: CatalogPlan = {
  code: 'self-hosted',
  storageBytes: 10 * 1024 ** 3,
  vectors: 1_000_000,
  maxFileBytes: 25 * 1024 ** 2,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: 512,
  operationNodes: DEFAULT_OPERATION_NODES,
}

/** Ids of agents and workflows begin so; a model may not. */
const RESERVED_PREFIX = /^(agent|workflow)\//
const MAX_NAME_LENGTH = 200
/** Times 128 choices, the most of one request, this still fits GraphQL's 32-bit Int. */
const MAX_TOKENS = 10_000_000
const MAX_DIMENSIONS = 65_536
/** Each one that fails is more waiting for the caller. */
const MAX_FALLBACKS = 8
/** More than anybody remembers. */
const MAX_ALIASES = 32
/** Vendors have one or two; every open hold carries them. */
const MAX_TIERS = 8
const TOKEN_PRICES = ['input', 'cached_input', 'cache_write', 'output'] as const
const PRICES_OF_KIND = { chat: ['input', 'output'], embedding: ['input'], transcription: ['audio'] } as const

/** The operator's catalog of engines, models and plans. @throws {CatalogError} */
export function readCatalogFile(path: string, env: Readonly<Record<string, string | undefined>>): CatalogFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new CatalogError([`${path}: cannot be read: ${(error as Error).message}`])
  }
  return parseCatalog(text, path, env)
}

/** `name` begins every problem. @throws {CatalogError} */
export function parseCatalog(text: string, name: string, env: Readonly<Record<string, string | undefined>>): CatalogFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  if (document.errors.length) {
    throw new CatalogError(document.errors.map((error) => `${name}:${lines.linePos(error.pos[0]).line}: ${error.message.split('\n')[0]}`))
  }
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string') node.value = substitute(node.value, env)
    },
  })
  const problems: string[] = []
  const report: Report = (path, message) => problems.push(`${name}:${lineOf(document, lines, path)}: ${pathText(path)}: ${message}`)

  const root = new Fields(document.toJS() ?? {}, [], report)
  const engines = root.entries('engines').map(([engine, path]) => engineOf(engine, new Fields(root.at(path), path, report)))
  const models = root.items('models').map((path) => modelOf(new Fields(root.at(path), path, report)))
  const plans = root.entries('plans').map(([plan, path]) => planOf(plan, new Fields(root.at(path), path, report)))
  root.refuseOthers()
  checkReferences(engines, models, report)
  if (problems.length) throw new CatalogError(problems)
  return { engines, models, plans: plans.some(({ code }) => code === SELF_HOSTED.code) ? plans : [SELF_HOSTED, ...plans] }
}

/** `${NAME}` and `${NAME:-default}`; a variable that is not set or empty gives the default, or nothing. */
function substitute(text: string, env: Readonly<Record<string, string | undefined>>): string {
  return text.replace(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, fallback = '') => env[name] || fallback)
}

/**
 * What each kind must be given: one of each inner list's settings, joined by `+` where they only serve together. An engine is refused where the file
 * names none of them, and off where all that it names are empty.
 */
const NEEDS: Readonly<Record<EngineKind, readonly (readonly string[])[]>> = {
  openai: [['base_url']],
  azure: [['base_url', 'resource'], ['api_key']],
  anthropic: [['api_key']],
  google: [['api_key']],
  bedrock: [['region'], ['api_key', 'access_key_id+secret_access_key']],
  mistral: [['api_key']],
  cohere: [['api_key']],
  embedded: [],
}
/** Settings of these kinds only; every kind takes the others. */
const SETTINGS_OF_KIND = {
  region: 'bedrock',
  access_key_id: 'bedrock',
  secret_access_key: 'bedrock',
  session_token: 'bedrock',
  resource: 'azure',
  api_version: 'azure',
} as const satisfies Readonly<Record<string, EngineKind>>
/** No call takes longer. */
const MAX_WAIT_SECONDS = 900
const REGION = /^[a-z0-9-]{1,40}$/
const RESOURCE = /^[A-Za-z0-9-]{1,64}$/

function engineOf(name: string, fields: Fields): EngineEntry {
  const kind = fields.oneOf('kind', ENGINE_KINDS)
  const badge = fields.oneOf('badge', ['local', 'regional', 'cloud'])
  const settings: Record<string, string | null> = { base_url: fields.text('base_url', null), api_key: fields.text('api_key', null) }
  for (const [setting, kindOfIt] of Object.entries(SETTINGS_OF_KIND))
    settings[setting] = kind === kindOfIt ? fields.text(setting, null) : null
  const { base_url: baseUrl = null, api_key: apiKey = null, region = null, resource = null } = settings
  const maxBatch = fields.integer('max_batch', 1, 2_048)
  const isCloud = badge === 'cloud'
  const fetchesImages = kind === 'openai' ? fields.flag('fetches_images', isCloud) : isCloud
  const wait = (name: string) => {
    const seconds = fields.integer(name, 1, MAX_WAIT_SECONDS)
    return seconds && seconds * 1_000
  }
  const [connectMs, firstByteMs, idleMs] = [wait('connect_seconds'), wait('first_byte_seconds'), wait('idle_seconds')]
  if (baseUrl && !/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? '')) fields.problem('base_url', 'is no http or https address')
  if (region && !REGION.test(region)) fields.problem('region', 'is no name of a region, such as eu-central-1')
  if (resource && !RESOURCE.test(resource)) fields.problem('resource', 'is no name of a resource')
  const missing: string[] = []
  for (const choices of NEEDS[kind] ?? []) {
    const given = choices.filter((choice) => choice.split('+').some((setting) => settings[setting] !== null))
    if (given.length === 0) fields.problem(choices[0]!, choices.length > 1 ? `is missing, and so is \`${choices[1]}\`` : 'is missing')
    else if (!given.some((choice) => choice.split('+').every((setting) => settings[setting]))) missing.push(given.join(' or '))
  }
  // A server of the OpenAI protocol may have no key; one that the file asks for and does not get turns it off.
  if (kind === 'openai' && apiKey === '') missing.push('api_key')
  fields.refuseOthers()
  return {
    name,
    kind,
    badge,
    baseUrl: baseUrl || null,
    apiKey: apiKey || null,
    region: region || null,
    accessKeyId: settings.access_key_id || null,
    secretAccessKey: settings.secret_access_key || null,
    sessionToken: settings.session_token || null,
    resource: resource || null,
    apiVersion: settings.api_version || null,
    maxBatch,
    fetchesImages,
    connectMs,
    firstByteMs,
    idleMs,
    missing,
    on: missing.length === 0,
  }
}

function modelOf(fields: Fields): ModelEntry {
  const id = fields.text('id')
  const kind = fields.oneOf('kind', ['chat', 'embedding', 'transcription'])
  const price = priceOf(fields, kind)
  const model = {
    id,
    kind,
    price,
    engine: fields.text('engine'),
    engineModel: fields.text('engine_model', id),
    supports: fields.list('supports', FEATURES),
    contextWindow: fields.integer('context_window', 1, MAX_TOKENS),
    maxOutputTokens: fields.integer('max_output_tokens', 1, MAX_TOKENS),
    imageTokens: fields.integer('image_tokens', 1, MAX_TOKENS),
    lowImageTokens: fields.integer('low_image_tokens', 1, MAX_TOKENS),
    dimensions: fields.integer('dimensions', 1, MAX_DIMENSIONS),
    markTokens: fields.integer('mark_tokens', 0, 64) ?? 2,
    queryPrefix: fields.text('query_prefix', ''),
    passagePrefix: fields.text('passage_prefix', ''),
    cosineSpread: fields.number('cosine_spread'),
    aliases: fields.list('aliases', null),
    fallbacks: fields.list('fallbacks', null),
    created: fields.date('created'),
  }
  for (const [field, name] of [['id', id] as const, ...model.aliases.map((alias) => ['aliases', alias] as const)]) {
    if (name.length > MAX_NAME_LENGTH) fields.problem(field, `is longer than ${MAX_NAME_LENGTH} characters`)
    if (RESERVED_PREFIX.test(name)) fields.problem(field, 'begins with a prefix reserved for agents and workflows')
  }
  if (model.aliases.includes('')) fields.problem('aliases', 'has an empty name')
  if (model.aliases.length > MAX_ALIASES) fields.problem('aliases', `has more than ${MAX_ALIASES} names`)
  if (kind === 'embedding' && model.aliases.length > 0)
    fields.problem('aliases', 'is not for embeddings: a name that moves to another model would mix their vectors; name the model itself so')
  if (kind === 'embedding' && model.dimensions === null) fields.problem('dimensions', 'is missing: the length of the vectors')
  if (kind === 'embedding' && model.fallbacks.length > 0)
    fields.problem('fallbacks', 'is not for embeddings: vectors of two models cannot be compared')
  if (kind === 'transcription' && model.fallbacks.length > 0) fields.problem('fallbacks', 'is for chat models only')
  if (model.fallbacks.length > MAX_FALLBACKS) fields.problem('fallbacks', `has more than ${MAX_FALLBACKS} models`)
  if (kind !== 'transcription' && model.supports.includes('streaming'))
    fields.problem('supports', 'has `streaming`, which is for transcription models: all chat models stream')
  if (model.supports.includes('prompt_cache') && !fields.inner('price').has('cache_write'))
    fields.problem('supports', 'has `prompt_cache`, which needs the price of writing to the cache: `cache_write`')
  if (kind === 'chat' && model.maxOutputTokens === null && model.contextWindow === null) {
    fields.problem('max_output_tokens', 'is missing: without it or context_window the most that a call can cost is unknown')
  }
  fields.refuseOthers()
  return model
}

function priceOf(fields: Fields, kind: ModelEntry['kind']): ModelEntry['price'] {
  const price = fields.inner('price')
  const needed = PRICES_OF_KIND[kind] ?? []
  for (const unit of needed) if (!price.has(unit)) price.problem(unit, 'is missing')
  if (kind === 'transcription' && price.has('input') !== price.has('output'))
    price.problem(price.has('input') ? 'output' : 'input', 'is missing: a model that is paid by the token has both')
  const prices = tokenPricesOf(price)
  const result = { ...prices, audio: price.usd('audio'), tiers: tiersOf(price, kind) }
  price.refuseOthers()
  return result
}

function tokenPricesOf(price: Fields): TokenPrices {
  const input = price.usd('input')
  return {
    input,
    cachedInput: price.usd('cached_input') ?? input,
    cacheWrite: price.usd('cache_write') ?? input,
    output: price.usd('output'),
  }
}

/** A tier names each of the prices that the model has below it: what would be taken from elsewhere would be a guess. */
function tiersOf(price: Fields, kind: ModelEntry['kind']): readonly PriceTier[] {
  const named = TOKEN_PRICES.filter((unit) => price.has(unit))
  const items = price.inners('tiers')
  if (items.length > 0 && kind === 'transcription') price.problem('tiers', 'is for models that are paid by the token')
  if (items.length > MAX_TIERS) price.problem('tiers', `has more than ${MAX_TIERS} tiers`)
  let least = 1
  return items.map((tier) => {
    for (const unit of named) if (!tier.has(unit)) tier.problem(unit, 'is missing')
    if (!tier.has('above_input_tokens')) tier.problem('above_input_tokens', 'is missing')
    const aboveInputTokens = tier.integer('above_input_tokens', least, MAX_TOKENS) ?? least
    least = aboveInputTokens + 1
    const prices = tokenPricesOf(tier)
    tier.refuseOthers()
    return { aboveInputTokens, ...prices }
  })
}

function planOf(code: string, fields: Fields): CatalogPlan {
  const limit = (name: string) => fields.integer(name, 0, Number.MAX_SAFE_INTEGER)
  const plan: CatalogPlan = {
    code,
    storageBytes: limit('storage_bytes'),
    vectors: limit('vectors'),
    maxFileBytes: limit('max_file_bytes') ?? SELF_HOSTED.maxFileBytes,
    requestsPerMinute: limit('requests_per_minute'),
    tokensPerMinute: limit('tokens_per_minute'),
    concurrency: limit('concurrency') ?? SELF_HOSTED.concurrency,
    operationNodes: limit('operation_nodes') ?? DEFAULT_OPERATION_NODES,
  }
  fields.refuseOthers()
  return plan
}

/** Kinds of models that these engines do not serve. */
const KINDS_LACKED: Readonly<Partial<Record<EngineKind, readonly ModelEntry['kind'][]>>> = {
  anthropic: ['embedding', 'transcription'],
  google: ['transcription'],
  bedrock: ['transcription'],
  mistral: ['transcription'],
  cohere: ['transcription'],
  embedded: ['transcription'],
}

function checkReferences(engines: readonly EngineEntry[], models: readonly ModelEntry[], report: Report): void {
  const engineKinds = new Map(engines.map(({ name, kind }) => [name, kind]))
  const byId = new Map<string, ModelEntry>()
  for (const [index, model] of models.entries()) {
    if (model.id && byId.has(model.id)) report(['models', index, 'id'], `\`${model.id}\` is there twice`)
    byId.set(model.id, model)
    const engineKind = engineKinds.get(model.engine)
    if (model.engine && !engineKinds.has(model.engine)) report(['models', index, 'engine'], `there is no engine \`${model.engine}\``)
    if (engineKind && model.kind && KINDS_LACKED[engineKind]?.includes(model.kind))
      report(['models', index, 'kind'], `engines of the kind ${engineKind} have no models of the kind ${model.kind}`)
  }
  const aliased = new Set<string>()
  for (const [index, model] of models.entries()) {
    for (const [place, alias] of model.aliases.entries()) {
      if (byId.has(alias)) report(['models', index, 'aliases', place], `\`${alias}\` is the id of a model`)
      if (aliased.has(alias)) report(['models', index, 'aliases', place], `\`${alias}\` is there twice`)
      aliased.add(alias)
    }
    for (const [place, id] of model.fallbacks.entries()) {
      const fallback = byId.get(id)
      if (!fallback || fallback === model) report(['models', index, 'fallbacks', place], `there is no other model \`${id}\``)
      else if (model.fallbacks.indexOf(id) < place) report(['models', index, 'fallbacks', place], `\`${id}\` is there twice`)
      else if (fallback.kind !== model.kind) report(['models', index, 'fallbacks', place], `\`${id}\` is of another kind`)
    }
  }
}

type Path = readonly (string | number)[]
type Report = (path: Path, message: string) => void

/** Line of the node at the path or, where there is none, of the nearest one around it. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length >= 0; length--) {
    const node = length ? document.getIn(path.slice(0, length), true) : document.contents
    const start = (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0]
    if (start !== undefined) return lines.linePos(start).line
  }
  return 1
}

function pathText(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index ? `.${step}` : step)).join('') || 'the file'
}

/** Reads the fields of one mapping, reports what is wrong with each, and at the end the fields that nobody asked for. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #path: Path
  readonly #report: Report
  readonly #known = new Set<string>()

  constructor(value: unknown, path: Path, report: Report) {
    const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (!isMapping) report(path, 'must be a mapping')
    this.#fields = isMapping ? (value as Record<string, unknown>) : {}
    this.#path = path
    this.#report = report
  }

  problem(name: string, message: string): void {
    this.#report([...this.#path, name], message)
  }

  has(name: string): boolean {
    return (this.#fields[name] ?? null) !== null
  }

  at([name, step]: Path): unknown {
    return (this.#fields[name as string] as Record<string | number, unknown>)[step!]
  }

  /** Names of a mapping's own fields, each with its path. */
  entries(name: string): readonly (readonly [string, Path])[] {
    const value = this.#take(name) ?? {}
    if (typeof value === 'object' && !Array.isArray(value)) return Object.keys(value).map((key) => [key, [name, key]])
    this.problem(name, 'must be a mapping')
    return []
  }

  items(name: string): readonly Path[] {
    const value = this.#take(name) ?? []
    if (Array.isArray(value)) return value.map((_, index) => [name, index])
    this.problem(name, 'must be a list')
    return []
  }

  inner(name: string): Fields {
    return new Fields(this.#take(name) ?? {}, [...this.#path, name], this.#report)
  }

  /** The mappings of a list. */
  inners(name: string): readonly Fields[] {
    const value = this.#take(name) ?? []
    if (Array.isArray(value)) return value.map((item, index) => new Fields(item, [...this.#path, name, index], this.#report))
    this.problem(name, 'must be a list')
    return []
  }

  /** Without a default the text must be there and not be empty. */
  text<Default extends string | null = string>(name: string, absent?: Default): string | Default {
    const value = this.#take(name)
    if (value === null && absent !== undefined) return absent
    if (typeof value === 'string' && (value !== '' || absent !== undefined)) return value
    this.problem(name, value === null || value === '' ? 'is missing' : 'must be text')
    return ''
  }

  oneOf<Value extends string>(name: string, values: readonly Value[]): Value {
    const value = this.#take(name)
    if (!values.includes(value as Value)) this.problem(name, value === null ? 'is missing' : `must be one of ${values.join(', ')}`)
    return value as Value
  }

  list<Value extends string>(name: string, values: readonly Value[] | null): readonly Value[] {
    const value = this.#take(name) ?? []
    if (!Array.isArray(value)) {
      this.problem(name, 'must be a list')
      return []
    }
    for (const item of value) {
      if (values ? !values.includes(item) : typeof item !== 'string')
        this.problem(name, values ? `has \`${item}\`, which is none of ${values.join(', ')}` : 'must hold text')
    }
    return value
  }

  flag(name: string, absent: boolean): boolean {
    const value = this.#take(name) ?? absent
    if (typeof value === 'boolean') return value
    this.problem(name, 'must be true or false')
    return absent
  }

  integer(name: string, least: number, most: number): number | null {
    const value = this.#take(name)
    if (value === null) return null
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
    this.problem(name, `must be a whole number from ${least} to ${most}`)
    return null
  }

  number(name: string): number | null {
    const value = this.#take(name)
    if (value === null || (typeof value === 'number' && value > 0 && Number.isFinite(value))) return value
    this.problem(name, 'must be a number above zero')
    return null
  }

  /** Quoted, because YAML would read 0.15 as a binary fraction. */
  usd(name: string): bigint | null {
    const value = this.#take(name)
    if (value === null) return null
    try {
      const amount = parseUsd(value)
      if (amount >= 0n) return amount
    } catch {}
    this.problem(name, 'must be a price in USD as a quoted decimal, such as "0.15", with at most 9 places')
    return null
  }

  date(name: string): Date | null {
    const value = this.#take(name)
    if (value === null) return null
    const date = new Date(String(value))
    if (!Number.isNaN(date.getTime())) return date
    this.problem(name, 'must be a date, such as 2026-01-31')
    return null
  }

  refuseOthers(): void {
    for (const name of Object.keys(this.#fields)) if (!this.#known.has(name)) this.problem(name, 'is not a field that the catalog knows')
  }

  #take(name: string): unknown {
    this.#known.add(name)
    return this.#fields[name] ?? null
  }
}
