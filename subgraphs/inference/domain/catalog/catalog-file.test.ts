import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CatalogError, parseCatalog, readCatalogFile } from './catalog-file.ts'

const ENGINES = 'engines:\n  near: { kind: embedded, badge: local }\n  far: { kind: openai, base_url: "http://a.test/v1", badge: cloud }\n'
const withModel = (fields: string) => `${ENGINES}models:\n  - { ${fields} }\n`
const TIER = '{ above_input_tokens: 9, input: "2", output: "3" }'
const EMBEDDING = 'id: e, engine: near, kind: embedding, dimensions: 4, price: { input: "1" }'
const SPEECH = 'id: s, engine: far, kind: transcription, price: { audio: "0.006" }'
const IDS = ['b', 'c', 'd', 'f', 'g', 'h', 'i', 'j', 'k']
const CHAT = 'id: a, engine: far, kind: chat, max_output_tokens: 10, price: { input: "1", output: "2" }'

function findProblems(text: string): readonly string[] {
  try {
    parseCatalog(text, 'c.yaml', {})
    return []
  } catch (error) {
    return (error as CatalogError).problems
  }
}

describe('Model catalog of the project', () => {
  const text = readFileSync(new URL('../../../../catalog.yaml', import.meta.url), 'utf8')

  it('offers the embedded models without any setting, and enables other engines by the environment', () => {
    const on = (env: Record<string, string>) => parseCatalog(text, 'catalog.yaml', env).engines.filter((engine) => engine.on)
    expect(on({}).map(({ name }) => name)).toEqual(['embedded'])
    expect(on({ OPENAI_API_KEY: 'sk-1', OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1' })).toMatchObject([
      { name: 'embedded' },
      { name: 'openai', apiKey: 'sk-1', baseUrl: 'https://api.openai.com/v1' },
      { name: 'ollama', apiKey: null, baseUrl: 'http://127.0.0.1:11434/v1' },
    ])
  })

  it('lists every vendor, and enables each by its own settings', () => {
    const engines = (env: Record<string, string>) =>
      parseCatalog(text, 'catalog.yaml', env).engines.flatMap(({ name, on }) => (on && name !== 'embedded' ? [name] : []))
    expect(engines({ ANTHROPIC_API_KEY: 'k' })).toEqual(['anthropic'])
    expect(engines({ GEMINI_API_KEY: 'k', MISTRAL_API_KEY: 'k', COHERE_API_KEY: 'k' })).toEqual([
      'google',
      'mistral',
      'cohere',
      'cohere-rerank',
    ])
    expect(engines({ AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a' })).toEqual([])
    expect(engines({ AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's' })).toEqual(['bedrock'])
    expect(engines({ AZURE_OPENAI_RESOURCE: 'ours', AZURE_OPENAI_API_KEY: 'k' })).toEqual(['azure'])
    const { models } = parseCatalog(text, 'catalog.yaml', {})
    for (const kind of ['anthropic', 'google', 'mistral', 'cohere', 'bedrock', 'azure', 'openai'])
      expect(models.some(({ engine }) => engine === kind)).toBe(true)
  })

  it('has prices in nano-USD per million tokens', () => {
    const { models } = parseCatalog(text, 'catalog.yaml', {})
    expect(models.find(({ id }) => id === 'gpt-4o-mini')?.price).toEqual({
      input: 150_000_000n,
      cachedInput: 75_000_000n,
      cacheWrite: 150_000_000n,
      output: 600_000_000n,
      audio: null,
      search: null,
      tiers: [],
    })
    expect(models.find(({ id }) => id === 'e5-small-ar-en')).toMatchObject({ dimensions: 384, cosineSpread: 0.03, queryPrefix: 'query: ' })
  })

  it('has the same plan as the built-in one', () => {
    expect(parseCatalog(text, 'catalog.yaml', {}).plans).toEqual(parseCatalog('', 'catalog.yaml', {}).plans)
  })
})

describe('Model catalog refuses', () => {
  it.each<[string, string, string]>([
    ['bad YAML', 'engines: {', 'c.yaml:1: '],
    ['a list instead of a mapping', '[]', 'c.yaml:1: the file: must be a mapping'],
    ['a duplicate engine', `${ENGINES}  near: { kind: embedded, badge: local }\n`, 'c.yaml:4: Map keys must be unique'],
    ['an unknown field', `${ENGINES}modles: []\n`, 'c.yaml:4: modles: is not a field'],
    [
      'an engine of an unknown kind',
      'engines:\n  a: { kind: oracle, badge: local }\n',
      'c.yaml:2: engines.a.kind: must be one of openai, azure, anthropic,',
    ],
    ['an engine that is not a mapping', 'engines:\n  a: 5\n', 'c.yaml:2: engines.a: must be a mapping'],
    ['a model that is not a mapping', `${ENGINES}models:\n  - null\n`, 'c.yaml:5: models[0]: must be a mapping'],
    ['an alias that is not text', withModel(`${CHAT}, aliases: [null]`), 'c.yaml:5: models[0].aliases: must hold text'],
    ['an engine without a badge', 'engines:\n  a: { kind: embedded }\n', 'c.yaml:2: engines.a.badge: is missing'],
    ['an engine without an address', 'engines:\n  a: { kind: openai, badge: local }\n', 'c.yaml:2: engines.a.base_url: is missing'],
    [
      'an address of another protocol',
      'engines:\n  a: { kind: openai, badge: local, base_url: "ftp://a" }\n',
      'c.yaml:2: engines.a.base_url: is not an http',
    ],
    [
      'a timeout of zero',
      'engines:\n  a: { kind: embedded, badge: local, first_byte_seconds: 0 }\n',
      'c.yaml:2: engines.a.first_byte_seconds: must be a whole number from 1 to 900',
    ],
    ['a vendor without a key', 'engines:\n  a: { kind: anthropic, badge: cloud }\n', 'c.yaml:2: engines.a.api_key: is missing'],
    [
      'Bedrock without a region',
      'engines:\n  a: { kind: bedrock, badge: cloud, api_key: "k" }\n',
      'c.yaml:2: engines.a.region: is missing',
    ],
    [
      'Bedrock without any key',
      'engines:\n  a: { kind: bedrock, badge: cloud, region: eu-west-1 }\n',
      'c.yaml:2: engines.a.api_key: is missing, and so is `access_key_id+secret_access_key`',
    ],
    [
      'Azure without an address',
      'engines:\n  a: { kind: azure, badge: cloud, api_key: "k" }\n',
      'c.yaml:2: engines.a.base_url: is missing, and so is `resource`',
    ],
    [
      'a region that would be another host',
      'engines:\n  a: { kind: bedrock, badge: cloud, region: "x.test/", api_key: "k" }\n',
      'c.yaml:2: engines.a.region: is not the name of a region',
    ],
    [
      'a setting of another kind',
      'engines:\n  a: { kind: google, badge: cloud, api_key: "k", region: eu-west-1 }\n',
      'c.yaml:2: engines.a.region: is not a field',
    ],
    ['a model without an id', withModel(CHAT.replace('id: a, ', '')), 'c.yaml:5: models[0].id: is missing'],
    ['a reserved id', withModel(CHAT.replace('id: a', 'id: agent/a')), 'c.yaml:5: models[0].id: begins with a prefix'],
    ['a duplicate model', `${withModel(CHAT)}  - { ${CHAT} }\n`, 'c.yaml:6: models[1].id: `a` occurs twice'],
    ['an unknown engine', withModel(CHAT.replace('far', 'nowhere')), 'c.yaml:5: models[0].engine: there is no engine `nowhere`'],
    [
      'embeddings of a vendor that has none',
      `${ENGINES.replace('openai, base_url: "http://a.test/v1"', 'anthropic, api_key: "k"')}models:\n  - { id: e, engine: far, kind: embedding, dimensions: 4, price: { input: "1" } }\n`,
      'c.yaml:5: models[0].kind: engines of the kind anthropic have no models of the kind embedding',
    ],
    ['an unknown kind', withModel(CHAT.replace('kind: chat', 'kind: talk')), 'c.yaml:5: models[0].kind: must be one of'],
    ['an unknown feature', withModel(`${CHAT}, supports: [sight]`), 'c.yaml:5: models[0].supports: has `sight`'],
    ['an unknown field of a model', withModel(`${CHAT}, contxt_window: 5`), 'c.yaml:5: models[0].contxt_window: is not a field'],
    ['no price', withModel('id: a, engine: far, kind: embedding, dimensions: 4'), 'c.yaml:5: models[0].price.input: is missing'],
    ['a price that is a number', withModel(CHAT.replace('"1"', '0.15')), 'c.yaml:5: models[0].price.input: must be a price'],
    ['a price below zero', withModel(CHAT.replace('"1"', '"-1"')), 'c.yaml:5: models[0].price.input: must be a price'],
    ['an unknown price', withModel(CHAT.replace('input:', 'cached: "1", input:')), 'c.yaml:5: models[0].price.cached: is not a field'],
    [
      'an embedding model without dimensions',
      withModel('id: e, engine: near, kind: embedding, price: { input: "1" }'),
      'c.yaml:5: models[0].dimensions: is missing',
    ],
    [
      'a chat model with unknown maximum output',
      withModel(CHAT.replace('max_output_tokens: 10, ', '')),
      'c.yaml:5: models[0].max_output_tokens: is missing',
    ],
    ['half a token', withModel(`${CHAT}, context_window: 0.5`), 'c.yaml:5: models[0].context_window: must be a whole number'],
    ['a spread of zero', withModel(`${CHAT}, cosine_spread: 0`), 'c.yaml:5: models[0].cosine_spread: must be a number above zero'],
    ['a missing fallback', withModel(`${CHAT}, fallbacks: [b]`), 'c.yaml:5: models[0].fallbacks[0]: there is no other model `b`'],
    [
      'a model that falls back to itself',
      withModel(`${CHAT}, fallbacks: [a]`),
      'c.yaml:5: models[0].fallbacks[0]: there is no other model `a`',
    ],
    [
      'a duplicate fallback',
      `${withModel(`${CHAT}, fallbacks: [b, b]`)}  - { ${CHAT.replace('id: a', 'id: b')} }\n`,
      'c.yaml:5: models[0].fallbacks[1]: `b` occurs twice',
    ],
    [
      'a fallback of another kind',
      `${withModel(`${CHAT}, fallbacks: [e]`)}  - { ${EMBEDDING} }\n`,
      'c.yaml:5: models[0].fallbacks[0]: `e` is of another kind',
    ],
    [
      'nine fallbacks',
      `${withModel(`${CHAT}, fallbacks: [${IDS.join(', ')}]`)}${IDS.map((id) => `  - { ${CHAT.replace('id: a', `id: ${id}`)} }\n`).join('')}`,
      'c.yaml:5: models[0].fallbacks: has more than 8 models',
    ],
    [
      'a fallback for embeddings',
      `${withModel(`${EMBEDDING}, fallbacks: [f]`)}  - { ${EMBEDDING.replace('id: e', 'id: f')} }\n`,
      'c.yaml:5: models[0].fallbacks: is not for embeddings',
    ],
    [
      'an alias that is the id of a model',
      `${withModel(`${CHAT}, aliases: [x, b]`)}  - { ${CHAT.replace('id: a', 'id: b')} }\n`,
      'c.yaml:5: models[0].aliases[1]: `b` is the id of a model',
    ],
    ['an alias that is its own id', withModel(`${CHAT}, aliases: [a]`), 'c.yaml:5: models[0].aliases[0]: `a` is the id of a model'],
    [
      'an alias of two models',
      `${withModel(`${CHAT}, aliases: [x]`)}  - { ${CHAT.replace('id: a', 'id: b')}, aliases: [x] }\n`,
      'c.yaml:6: models[1].aliases[0]: `x` occurs twice',
    ],
    ['an empty alias', withModel(`${CHAT}, aliases: [""]`), 'c.yaml:5: models[0].aliases: has an empty name'],
    ['a reserved alias', withModel(`${CHAT}, aliases: [workflow/x]`), 'c.yaml:5: models[0].aliases: begins with a prefix'],
    ['an alias for embeddings', withModel(`${EMBEDDING}, aliases: [x]`), 'c.yaml:5: models[0].aliases: is not for embeddings'],
    [
      'a fallback named by its alias',
      `${withModel(`${CHAT}, fallbacks: [x]`)}  - { ${CHAT.replace('id: a', 'id: b')}, aliases: [x] }\n`,
      'c.yaml:5: models[0].fallbacks[0]: there is no other model `x`',
    ],
    [
      'a fallback for transcriptions',
      `${withModel(`${SPEECH}, fallbacks: [t]`)}  - { ${SPEECH.replace('id: s', 'id: t')} }\n`,
      'c.yaml:5: models[0].fallbacks: is for chat and rerank models only',
    ],
    [
      'streaming of a chat model',
      withModel(`${CHAT}, supports: [streaming]`),
      'c.yaml:5: models[0].supports: has `streaming`, which is for transcription models',
    ],
    [
      'a tier without a price that the model has',
      withModel(CHAT.replace('price: {', 'price: { cached_input: "0.1", tiers: [{ above_input_tokens: 9, input: "2", output: "3" }],')),
      'c.yaml:5: models[0].price.tiers[0].cached_input: is missing',
    ],
    [
      'a tier without a threshold',
      withModel(CHAT.replace('price: {', 'price: { tiers: [{ input: "2", output: "3" }],')),
      'c.yaml:5: models[0].price.tiers[0].above_input_tokens: is missing',
    ],
    [
      'tiers that do not rise',
      withModel(CHAT.replace('price: {', `price: { tiers: [${TIER}, ${TIER}],`)),
      'c.yaml:5: models[0].price.tiers[1].above_input_tokens: must be a whole number from 10 to',
    ],
    [
      'nine tiers',
      withModel(CHAT.replace('price: {', `price: { tiers: [${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => TIER.replace('9', String(n)))}],`)),
      'c.yaml:5: models[0].price.tiers: has more than 8 tiers',
    ],
    [
      'tiers of audio',
      withModel(SPEECH.replace('price: {', `price: { tiers: [${TIER.replace('input: "2", output: "3"', 'input: "2"')}],`)),
      'c.yaml:5: models[0].price.tiers: is for models that are paid by the token',
    ],
    [
      'has one of the two prices of tokens of speech',
      withModel(SPEECH.replace('price: {', 'price: { input: "6",')),
      'c.yaml:5: models[0].price.output: is missing: a model that is paid by the token has both',
    ],
    ['a plan below zero', 'plans:\n  p: { vectors: -1 }\n', 'c.yaml:2: plans.p.vectors: must be a whole number'],
    ['an unknown field of a plan', 'plans:\n  p: { vektors: 1 }\n', 'c.yaml:2: plans.p.vektors: is not a field'],
  ])('%s', (_name, text, problem) => {
    expect(findProblems(text)).toEqual([expect.stringContaining(problem)])
  })

  it('all problems at once', () => {
    expect(findProblems('engines:\n  a: { kind: oracle, badge: moon }\nmodels: 5\nplans: []\n')).toHaveLength(4)
  })
})

it('a variable resolves to its value, its default, or an empty text', () => {
  const text = `engines: { a: { kind: openai, badge: local, base_url: "\${URL:-http://a.test}/v1", api_key: "\${KEY}" } }`
  const [bare] = parseCatalog(text, 'c', { URL: '' }).engines
  expect([bare?.baseUrl, bare?.apiKey, bare?.on]).toEqual(['http://a.test/v1', null, false])
  const [set] = parseCatalog(text, 'c', { URL: 'http://b.test', KEY: 'k' }).engines
  expect([set?.baseUrl, set?.apiKey, set?.on]).toEqual(['http://b.test/v1', 'k', true])
})

it.each<[string, readonly string[]]>([
  ['{ kind: anthropic, badge: cloud, api_key: "" }', ['api_key']],
  ['{ kind: anthropic, badge: cloud, api_key: "k", base_url: "" }', []],
  ['{ kind: bedrock, badge: cloud, region: "", access_key_id: "", secret_access_key: "" }', ['region', 'access_key_id+secret_access_key']],
  ['{ kind: bedrock, badge: cloud, region: eu-west-1, access_key_id: "a", secret_access_key: "" }', ['access_key_id+secret_access_key']],
  ['{ kind: bedrock, badge: cloud, region: eu-west-1, api_key: "", access_key_id: "a", secret_access_key: "s", session_token: "" }', []],
  ['{ kind: azure, badge: cloud, resource: "", api_key: "k" }', ['resource']],
  ['{ kind: azure, badge: cloud, base_url: "", resource: ours, api_key: "k", api_version: "2024-10-21" }', []],
])('the engine %s lacks %j', (engine, missing) => {
  expect(parseCatalog(`engines: { a: ${engine} }`, 'c', {}).engines[0]).toMatchObject({ missing, on: missing.length === 0 })
})

it('cloud engines fetch images by default, and OpenAI-compatible servers where the file says so', () => {
  const engines = (badge: string, setting = '') => `engines: { a: { kind: openai, badge: ${badge}, base_url: "http://a.test"${setting} } }`
  const fetchesImages = (text: string) => parseCatalog(text, 'c', {}).engines[0]?.fetchesImages
  expect(['cloud', 'regional', 'local'].map((badge) => fetchesImages(engines(badge)))).toEqual([true, false, false])
  expect(['cloud', 'local'].map((badge) => fetchesImages(engines(badge, ', fetches_images: false')))).toEqual([false, false])
  expect(fetchesImages(engines('local', ', fetches_images: true'))).toBe(true)
  for (const [badge, expected] of [
    ['cloud', true],
    ['regional', false],
  ] as const)
    expect(fetchesImages(`engines: { a: { kind: azure, badge: ${badge}, resource: ours, api_key: k } }`)).toBe(expected)
  expect(() => parseCatalog(engines('local', ', fetches_images: "no"'), 'c', {})).toThrow(
    'c:1: engines.a.fetches_images: must be true or false',
  )
  expect(() => parseCatalog('engines: { a: { kind: google, badge: cloud, api_key: k, fetches_images: false } }', 'c', {})).toThrow(
    'is not a field',
  )
})

it('a plan uses the defaults of the built-in one only where null would mean no limit', () => {
  const { plans } = parseCatalog('plans:\n  small: { vectors: 3, max_file_bytes: 2000 }\n', 'c', {})
  expect(plans.map(({ code }) => code)).toEqual(['self-hosted', 'small'])
  expect(plans[1]).toEqual({
    code: 'small',
    storageBytes: null,
    vectors: 3,
    maxFileBytes: 2_000,
    requestsPerMinute: null,
    tokensPerMinute: null,
    concurrency: 512,
    ocrPages: null,
    ocrPagePrice: '0',
    operationNodes: 10_000,
    ingestionWeight: 1,
  })
})

it('a limit of a plan is at most the greatest Int, which GraphQL can express', () => {
  for (const field of ['vectors', 'max_file_bytes', 'requests_per_minute', 'tokens_per_minute', 'concurrency', 'ocr_pages']) {
    expect(() => parseCatalog(`plans:\n  large: { ${field}: 2147483648 }\n`, 'c', {})).toThrow(
      `plans.large.${field}: must be a whole number`,
    )
    expect(parseCatalog(`plans:\n  large: { ${field}: 2147483647 }\n`, 'c', {}).plans).toHaveLength(2)
  }
  expect(parseCatalog('plans:\n  large: { storage_bytes: 9007199254740991 }\n', 'c', {}).plans[1]).toMatchObject({
    storageBytes: Number.MAX_SAFE_INTEGER,
  })
})

it('a plan has a fair-queue turn of 1 to 10 documents', () => {
  expect(parseCatalog('plans:\n  large: { ingestion_weight: 10 }\n', 'c', {}).plans[1]).toMatchObject({ ingestionWeight: 10 })
  for (const weight of [0, 11])
    expect(() => parseCatalog(`plans:\n  none: { ingestion_weight: ${weight} }\n`, 'c', {})).toThrow('a whole number from 1 to 10')
})

it('a plan has a page price that billing can count', () => {
  const plan = (price: string) => parseCatalog(`plans:\n  large: { ocr_pages: 0, ocr_page_price: ${price} }\n`, 'c', {}).plans[1]
  expect(plan('"0.001500000"')).toMatchObject({ ocrPages: 0, ocrPagePrice: '0.0015' })
  expect(plan('"9"')).toMatchObject({ ocrPagePrice: '9' })
  expect(() => plan('"9.000000001"')).toThrow('plans.large.ocr_page_price: must be at most "9" USD')
  expect(() => plan('0.1')).toThrow('must be a price in USD as a quoted decimal')
})

it('a plan allows at least one call', () => {
  for (const limit of ['requests_per_minute', 'tokens_per_minute', 'concurrency'])
    expect(() => parseCatalog(`plans:\n  none: { ${limit}: 0 }\n`, 'c', {})).toThrow(`${limit}: must be a whole number from 1 to`)
})

describe('Catalog file', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'catalog-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('is read with the environment', () => {
    const file = join(folder, 'catalog.yaml')
    writeFileSync(file, withModel(CHAT))
    expect(readCatalogFile(file, {}).models).toMatchObject([{ id: 'a', engineModel: 'a', price: { cachedInput: 1_000_000_000n } }])
  })

  it('is reported as one clear problem when it is missing', () => {
    expect(() => readCatalogFile(join(folder, 'absent.yaml'), {})).toThrow(CatalogError)
  })
})
