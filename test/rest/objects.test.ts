import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { readOpenApi } from '../../rest-adapter/http/openapi.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { readError, startAdapter } from './support.ts'

const AT = '2026-01-31T12:00:00.000Z'
const AT_SECONDS = 1769860800

/** A value as REST writes it: names in snake case, moments in seconds, the words of enums in lower case. */
function inRest(value: unknown): unknown {
  if (value === AT) return AT_SECONDS
  if (typeof value === 'string') return /^[A-Z_]{3,}$/.test(value) ? value.toLowerCase() : value
  if (Array.isArray(value)) return value.map(inRest)
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value).map(toField)) : value
}
const toField = ([name, value]: [string, unknown]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), inRest(value)]
/** A record with an id as an object of REST; `more` has the fields that have another name there. */
function toObject<More extends object>(object: string, { id, ...record }: { readonly id: string }, more: More) {
  return { ...(inRest(record) as object), id, object, ...more }
}

const collection = {
  id: 'col_1',
  code: 'hr',
  name: 'Handbook',
  description: null,
  ocr: 'OFF',
  embeddingModel: { id: 'e5-small-ar-en' },
  rerankModel: { id: 'rerank-v3.5' },
  transcriptionModel: { id: 'whisper-1' },
  dimensions: 384,
  documentCount: 2,
  documentCounts: { queued: 0, processing: 1, ready: 1, failed: 0 },
  chunkCount: 9,
  createdAt: AT,
}
const { code: _code, name: _name, ...placed } = collection
const collectionObject = toObject('collection', placed, {
  ...{ collection_code: 'hr', collection_name: 'Handbook' },
  ...{ embedding_model: 'e5-small-ar-en', rerank_model: 'rerank-v3.5', transcription_model: 'whisper-1' },
})
const file = {
  id: 'file_1',
  name: 'إجازة.txt',
  mediaType: 'text/plain',
  status: 'UPLOADED',
  checksum: 'sha256:00',
  sizeBytes: 5,
  createdAt: AT,
}
const { name: fileName, ...bytes } = file
const fileObject = toObject('file', bytes, { file_name: fileName })
const document = {
  id: 'doc_1',
  collection: { id: 'col_1' },
  file: { id: 'file_1', name: 'original.txt' },
  parent: { id: 'doc_0' },
  name: 'a.txt',
  externalId: null,
  version: 1,
  replacement: null,
  status: 'FAILED',
  stage: null,
  progress: null,
  error: { code: 'PASSWORD_REQUIRED', message: 'The file is encrypted.' },
  warnings: [],
  transcriptionModel: null,
  pageCount: 3,
  chunkCount: 0,
  language: 'ar',
  metadata: { team: 'hr' },
  attempts: 1,
  createdAt: AT,
}
const { collection: _in, file: _of, parent: _parent, name: documentName, ...ingested } = document
const documentObject = toObject('document', ingested, {
  ...{ collection_id: 'col_1', file_id: 'file_1', parent_id: 'doc_0', file_name: documentName },
})
const key = {
  id: 'key_1',
  name: 'app',
  scopes: ['INFERENCE', 'KNOWLEDGE_READ'],
  modelAllowlist: null,
  requestsPerMinute: 60,
  tokensPerMinute: null,
  spendLimit: { amount: '5', period: 'DAY', spent: '0.2', held: '0.1', resetsAt: AT },
  last4: 'abcd',
  expiresAt: AT,
  revokedAt: null,
  createdAt: AT,
}
const member = {
  id: 'mem_1',
  role: 'VIEWER',
  email: 'ann@example.org',
  name: 'Ann',
  apiKey: { id: 'key_1' },
  createdApiKeys: [{ id: 'key_2' }],
  lastSeenAt: AT,
  removedAt: null,
  createdAt: AT,
}
const { apiKey: _key, createdApiKeys: _created, ...person } = member
const memberObject = toObject('member', person, { key_id: 'key_1' })
const thread = { id: 'thr_1', agentId: 'agt_1', title: 'When?', messageCount: 1, updatedAt: AT, expiresAt: AT }
const threadObject = toObject('thread', thread, {})
const keyObject = {
  id: 'key_1',
  object: 'key',
  created_at: AT_SECONDS,
  name: 'app',
  scopes: ['inference', 'knowledge:read'],
  model_allowlist: null,
  requests_per_minute: 60,
  tokens_per_minute: null,
  spend_limit: { amount_usd: '5', period: 'day', spent_usd: '0.2', held_usd: '0.1', resets_at: AT_SECONDS },
  last4: 'abcd',
  expires_at: AT_SECONDS,
  last_used_at: null,
  revoked_at: null,
}
const noLimits = {
  storageBytes: null,
  vectors: null,
  maxFileBytes: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  ocrPages: 500,
}
const limits = inRest(noLimits) as object
const organization = {
  id: 'org_1',
  name: 'Acme',
  residencyPolicy: 'LOCAL_ONLY',
  lowBalanceThreshold: '5',
  status: 'ACTIVE',
  plan: { code: 'self-hosted', ...noLimits, vectors: 7 },
  createdAt: AT,
}
const organizationObject = {
  id: 'org_1',
  object: 'organization',
  created_at: AT_SECONDS,
  name: 'Acme',
  residency_policy: 'local_only',
  low_balance_threshold_usd: '5',
  status: 'active',
  plan: 'self-hosted',
  limits_in_force: { ...limits, vectors: 7 },
  quota: null,
}
const managed = { ...organization, limits: { ...noLimits, vectors: 7 }, suspendedAt: AT, suspensionReason: 'unpaid', deletedAt: null }
const managedObject = {
  ...organizationObject,
  limits: { ...limits, vectors: 7 },
  suspended_at: AT_SECONDS,
  suspension_reason: 'unpaid',
  deleted_at: null,
}
const ocrQuota = { used: 3, limit: 100 }
const quota = { storageBytes: { used: 5, limit: 10 }, vectors: { used: 1, limit: null } }
const entry = { id: 'ent_1', kind: 'TOP_UP', amount: '12.5', held: '0', balance: '112.5', reference: 'inv-1', at: AT }
const { amount, held, balance, at: _at, ...written } = entry
const entryObject = toObject('ledger_entry', written, {
  ...{ created_at: AT_SECONDS, amount_usd: amount, held_usd: held, balance_usd: balance },
})
const model = {
  id: 'meta/llama',
  kind: 'CHAT',
  vendor: 'openai',
  residency: 'CLOUD',
  supportsVision: true,
  supportsTools: true,
  supportsResponseSchema: false,
  supportsReasoning: true,
  contextWindow: 128000,
  price: {
    ...{ input: '0.15', cachedInput: null, cacheWrite: '0.1875', output: '0.6' },
    audioMinute: null,
    tiers: [{ aboveInputTokens: 200_000, input: '0.3', cachedInput: null, cacheWrite: '0.375', output: '0.9' }],
  },
  createdAt: AT,
}
const modelObject = {
  id: 'meta/llama',
  object: 'model',
  created: AT_SECONDS,
  created_at: AT_SECONDS,
  owned_by: 'openai',
  kind: 'chat',
  residency: 'cloud',
  supports_vision: true,
  supports_tools: true,
  supports_response_schema: false,
  supports_reasoning: true,
  context_window: 128000,
  price: {
    ...{ input: '0.15', cached_input: null, cache_write: '0.1875', output: '0.6' },
    audio_minute: null,
    tiers: [{ above_input_tokens: 200_000, input: '0.3', cached_input: null, cache_write: '0.375', output: '0.9' }],
  },
}
const page = (node: object) => ({ edges: [{ node, cursor: 'MTI' }], pageInfo: { hasNextPage: true, endCursor: 'cursor' } })
const list = (item: { readonly id: string; readonly [field: string]: unknown }, hasMore = true) => ({
  object: 'list',
  data: [item],
  has_more: hasMore,
  first_id: item.id,
  last_id: item.id,
})

const text = { text: 'Sur.', charStart: 4, charEnd: 8, totalChars: 20, nextOffset: 8, pages: [{ page: 2, charStart: 4, charEnd: 8 }] }
const chunkObject = {
  id: 'chunk_1',
  object: 'chunk',
  text: 'Sur.',
  heading_path: ['Ports'],
  page_start: 2,
  page_end: 2,
  char_start: 4,
  char_end: 8,
}
const pageBoxes = [{ page: 2, width: 595.3, height: 841.9, boxes: [{ x: 70, y: 96.5, width: 31.2, height: 12.5, start: 0, end: 4 }] }]
const chunkOfDocument = { id: 'chunk_1', text: 'Sur.', headingPath: ['Ports'], pageStart: 2, pageEnd: 2, charStart: 4, charEnd: 8 }
const former = { version: 1, file: null, name: 'a.txt', createdAt: AT, replacedAt: AT }
const fileMissing = { code: 'not_found', message: 'No file.', param: 'input.fileId' }
const replacement = {
  file: { id: 'file_2' },
  name: 'b.txt',
  status: 'PROCESSING',
  stage: 'EMBEDDING',
  progress: { done: 1, total: 2 },
  error: null,
  createdAt: AT,
}
const replaced = { ...document, externalId: 'contract-7', version: 3, replacement }
const replacedObject = {
  ...documentObject,
  external_id: 'contract-7',
  version: 3,
  replacement: {
    file_id: 'file_2',
    file_name: 'b.txt',
    created_at: AT_SECONDS,
    status: 'processing',
    stage: 'embedding',
    progress: { done: 1, total: 2 },
    error: null,
  },
}

const handlers = {
  CreateCollection: () => ({ createCollection: { collection } }),
  Collections: () => ({ collections: page(collection) }),
  Collection: ({ id }: { id: string }) => ({ collection: id === 'col_1' ? collection : null }),
  UpdateCollection: () => ({ updateCollection: { collection } }),
  DeleteCollection: ({ id }: { id: string }) => ({ deleteCollection: { id } }),
  UploadFile: () => ({ uploadFile: { file } }),
  Files: () => ({ files: page(file) }),
  File: ({ id }: { id: string }) => ({ file: id === 'file_1' ? file : null }),
  DeleteFile: ({ id }: { id: string }) => ({ deleteFile: { id } }),
  CreateDocument: ({ input }: { input: { metadata?: object } }) => ({
    createDocument: { created: input.metadata !== undefined, outcome: input.metadata === undefined ? 'UNCHANGED' : 'CREATED', document },
  }),
  Documents: ({ id }: { id: string }) => ({ collection: id === 'col_1' ? { documents: page(document) } : null }),
  AllDocuments: () => ({ documents: page(document) }),
  Document: ({ id }: { id: string }) => ({ document: id === 'doc_1' ? document : null }),
  RetryDocument: () => ({ retryDocument: { document: { ...document, status: 'QUEUED', error: null } } }),
  UpdateDocument: () => ({ updateDocument: { document: { ...document, name: 'b.txt' } } }),
  DocumentText: ({ id }: { id: string }) => ({
    document: { collection: { id: 'col_1' }, ...(id === 'doc_1' ? { status: 'READY', text } : { status: 'QUEUED', text: null }) },
  }),
  DocumentChunks: () => ({ document: { collection: { id: 'col_1' }, status: 'READY', chunks: page(chunkOfDocument) } }),
  DocumentChunksWithBoxes: () => ({
    document: { collection: { id: 'col_1' }, status: 'READY', chunks: page({ ...chunkOfDocument, pageBoxes }) },
  }),
  DocumentVersions: () => ({ document: { collection: { id: 'col_1' }, versions: [former] } }),
  SimilarDocuments: () => ({ document: { collection: { id: 'col_1' }, similarDocuments: [{ similarity: 0.9, document: replaced }] } }),
  CreateDocuments: () => ({
    createDocuments: {
      results: [
        { id: 'file_1', created: true, outcome: 'CREATED', document, error: null },
        { id: 'file_2', created: false, outcome: null, document: null, error: fileMissing },
      ],
    },
  }),
  RetryDocuments: () => ({ retryDocuments: { results: [{ id: 'doc_1', document, error: null }] } }),
  DeleteDocuments: () => ({
    deleteDocuments: {
      results: [
        { id: 'doc_1', error: null },
        { id: 'doc_2', error: { ...fileMissing, param: null } },
      ],
    },
  }),
  DeleteDocument: ({ id }: { id: string }) => ({ deleteDocument: { id } }),
  Models: () => ({ models: [model] }),
  Model: ({ id }: { id: string }) => ({ model: id === 'meta/llama' ? model : null }),
  UpdateMember: () => ({ updateMember: { member } }),
  Viewer: () => ({
    viewer: {
      ...key,
      organization: { id: 'org_1' },
      member: { ...member, memberships: [{ organizationId: 'org_1', organizationName: 'Acme', role: 'VIEWER', lastSeenAt: AT }] },
    },
  }),
  ResidencyEffects: () => ({
    residencyEffects: { policy: 'LOCAL_ONLY', residencies: ['LOCAL'], permittedModels: [], forbiddenModels: [model] },
  }),
  Plans: () => ({ plans: [organization.plan] }),
  IngestionQueues: ({ after }: { after?: string }) => ({
    ingestionQueues: {
      next: after ? null : 'org_5',
      queues: after ? [] : [{ organization: { id: 'org_1' }, due: 2, underWay: 1, dueSince: AT }],
    },
  }),
  BillingHealth: () => ({ health: { isReady: true, problems: [] } }),
  InferenceHealth: () => ({ health: { isReady: false, problems: ['engine: not there'] } }),
  KnowledgeHealth: () => {
    throw new KisError('part_unavailable', 'knowledge is unavailable at the moment.')
  },
  Threads: ({ id }: { id: string }) => ({ agent: id === 'agt_1' ? { threads: page(thread) } : null }),
  Thread: ({ id }: { id: string }) => ({ thread: id === 'thr_1' ? { ...thread, messages: [{ role: 'user', content: 'When?' }] } : null }),
  CreateApiKey: () => ({ createApiKey: { key: 'kis_live_secret', apiKey: key } }),
  ApiKeys: () => ({ organization: { apiKeys: page(key) } }),
  ApiKey: ({ id }: { id: string }) => ({ apiKey: id === 'key_1' ? key : null }),
  UpdateApiKey: () => ({ updateApiKey: { apiKey: key } }),
  RotateApiKey: () => ({ rotateApiKey: { key: 'kis_live_other', apiKey: key } }),
  RevokeApiKey: ({ id }: { id: string }) => ({ revokeApiKey: { apiKey: { id } } }),
  Organization: () => ({ organization: { ...organization, quota, ocrQuota } }),
  UpdateOrganization: () => ({ updateOrganization: { organization: { ...organization, quota, ocrQuota } } }),
  CreateOrganization: () => ({ createOrganization: { key: 'kis_live_first', organization: managed } }),
  Organizations: () => ({
    organizations: { ...page(managed), pageInfo: { hasNextPage: true, endCursor: Buffer.from('org_1').toString('base64url') } },
  }),
  AssignPlan: () => ({ assignPlan: { organization: managed } }),
  TopUpWallet: () => ({ topUpWallet: { entry } }),
  AdjustWallet: () => ({ adjustWallet: { entry } }),
  Wallet: () => ({ organization: { id: 'org_1', createdAt: AT, wallet: { balance: '112.5', held: '2.5', available: '110' } } }),
  LedgerEntries: () => ({ organization: { wallet: { entries: page(entry) } } }),
  UsageSummary: () => ({
    usageSummary: {
      since: AT,
      until: AT,
      total: sums,
      groups: [{ modelId: 'm', apiKeyId: null, day: AT, hour: AT, operation: null, totals: sums }],
    },
  }),
  Usage: () => ({
    usage: page({
      id: 'use_1',
      model: { id: 'm' },
      apiKey: { id: 'key_1' },
      operation: 'CHAT_COMPLETION',
      quantities: [
        { unit: 'INPUT_TOKENS', quantity: 7, rate: '0.1' },
        { unit: 'CACHE_WRITE_TOKENS', quantity: 3, rate: '0.125' },
        { unit: 'AUDIO_MILLISECONDS', quantity: 1500, rate: '0.1' },
      ],
      amount: '0.000001',
      rateCardVersion: 'v1',
      source: 'COUNTED',
      requestId: 'req_1',
      at: AT,
    }),
  }),
}
const sums = {
  calls: 2,
  inputTokens: 7,
  cachedInputTokens: 0,
  cacheWriteTokens: 3,
  outputTokens: 5,
  audioSeconds: 1.5,
  searchUnits: 2,
  pages: 4,
  amount: '9000000.000000001',
}
const { amount: sum, ...counted } = sums
const sumsObject = { ...(inRest(counted) as object), amount_usd: sum }
const usageObject = {
  id: 'use_1',
  object: 'usage_record',
  created_at: AT_SECONDS,
  model: 'm',
  key_id: 'key_1',
  operation: 'chat_completion',
  input_tokens: 7,
  cached_input_tokens: 0,
  cache_write_tokens: 3,
  output_tokens: 0,
  audio_seconds: 1.5,
  search_units: 0,
  pages: 0,
  amount_usd: '0.000001',
  rates: { input_tokens: '0.1', cache_write_tokens: '0.125', audio_milliseconds: '0.1' },
  rate_card_version: 'v1',
  source: 'counted',
  request_id: 'req_1',
}

const openapi = readOpenApi()
const ajv = new Ajv2020({ strict: false, validateFormats: false, schemas: { openapi: closed(openapi.document) } })

/** The description with no room for fields that it does not name, so that it names all that routes return. */
function closed(document: object): object {
  const parts = new Set<unknown>()
  const copy = structuredClone(document) as { readonly components: { readonly schemas: Record<string, object> } }
  const visit = (node: unknown, see: (schema: Record<string, unknown>) => void): void => {
    if (typeof node !== 'object' || node === null) return
    if (!Array.isArray(node)) see(node as Record<string, unknown>)
    for (const value of Object.values(node)) visit(value, see)
  }
  visit(copy, ({ properties, allOf = [], anyOf = [], oneOf = [] }) => {
    for (const part of [allOf, properties ? [anyOf, oneOf] : []].flat(2) as { readonly $ref?: string }[])
      parts.add(part.$ref === undefined ? part : copy.components.schemas[part.$ref.split('/').at(-1)!])
  })
  visit(copy, (schema) => {
    const isObject = typeof schema.properties === 'object' && schema.type === 'object'
    if ((isObject || Array.isArray(schema.allOf)) && !parts.has(schema) && schema.additionalProperties === undefined)
      schema.unevaluatedProperties = false
  })
  return copy
}

/** What is wrong with an answer by the description of its route. */
function findFault(method: string, path: string, status: number, responseBody: unknown): string {
  const templatePattern = (template: string) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
  const described = openapi.operations.filter((operation) => operation.method === method && templatePattern(operation.path))
  const schema = described[0]?.operation.responses[status]?.content?.['application/json']?.schema
  if (!schema) return `no description of ${method} ${path} ${status}`
  const validate = ajv.getSchema(`openapi${schema.$ref}`)!
  return validate(responseBody) ? '' : ajv.errorsText(validate.errors)
}

interface Case {
  readonly request: string
  readonly body?: unknown
  readonly status?: number
  /** Variables of the last operation that the gateway was asked. */
  readonly variables?: object
  readonly expected: unknown
}

const cases: readonly Case[] = [
  {
    request: 'POST /v1/collections',
    body: { collection_code: 'hr', collection_name: 'Handbook', embedding_model: 'e5-small-ar-en' },
    status: 201,
    variables: { input: { code: 'hr', name: 'Handbook', embeddingModel: 'e5-small-ar-en' } },
    expected: collectionObject,
  },
  {
    request: 'GET /v1/collections?limit=1&after=col_9&order=asc',
    variables: { first: 1, after: Buffer.from('col_9').toString('base64url'), order: 'ASC' },
    expected: list(collectionObject),
  },
  {
    request: 'GET /v1/collections?sort_by=name&order=asc&name_contains=a&since=0&after=2YU_',
    variables: { first: 20, after: '2YU_', order: 'ASC', sortBy: 'NAME', filter: { nameContains: 'a', since: '1970-01-01T00:00:00.000Z' } },
    expected: { ...list(collectionObject), last_id: 'cursor' },
  },
  {
    request: 'GET /v1/files?until=60&limit=1',
    variables: { first: 1, filter: { until: '1970-01-01T00:01:00.000Z' } },
    expected: list(fileObject),
  },
  { request: 'GET /v1/collections/col_1', variables: { id: 'col_1' }, expected: collectionObject },
  {
    request: 'PATCH /v1/collections/col_1',
    body: { description: null },
    variables: { input: { id: 'col_1', description: null } },
    expected: collectionObject,
  },
  {
    request: 'DELETE /v1/collections/col_1?detach=true',
    variables: { id: 'col_1', detach: true },
    expected: { id: 'col_1', object: 'collection', deleted: true },
  },
  {
    request: 'POST /v1/files',
    body: { file_name: 'إجازة.txt', content_base64: 'aGVsbG8=' },
    status: 201,
    variables: { input: { name: 'إجازة.txt', contentBase64: 'aGVsbG8=' } },
    expected: { message: fileObject },
  },
  { request: 'GET /v1/files', variables: { first: 20 }, expected: list(fileObject) },
  { request: 'GET /v1/files/file_1', expected: fileObject },
  { request: 'DELETE /v1/files/file_1', expected: { id: 'file_1', object: 'file', deleted: true } },
  {
    request: 'POST /v1/collections/col_1/documents',
    body: { file_id: 'file_1', metadata: { team: 'hr' } },
    status: 201,
    variables: { input: { collectionId: 'col_1', fileId: 'file_1', metadata: { team: 'hr' } } },
    expected: { ...documentObject, outcome: 'created' },
  },
  {
    request: 'POST /v1/collections/col_1/documents',
    body: { file_id: 'file_1' },
    status: 200,
    expected: { ...documentObject, outcome: 'unchanged' },
  },
  {
    request: 'GET /v1/collections/col_1/documents?status=failed',
    variables: { id: 'col_1', first: 20, status: 'FAILED' },
    expected: list(documentObject),
  },
  { request: 'GET /v1/collections/col_1/documents/doc_1', expected: documentObject },
  {
    request: 'POST /v1/collections/col_1/documents/doc_1/retry',
    variables: { id: 'doc_1' },
    expected: { ...documentObject, status: 'queued', error: null },
  },
  {
    request: 'PATCH /v1/collections/col_1/documents/doc_1',
    body: { file_name: 'b.txt', metadata: { year: 2026 } },
    variables: { input: { id: 'doc_1', name: 'b.txt', metadata: { year: 2026 } } },
    expected: { ...documentObject, file_name: 'b.txt' },
  },
  {
    request: 'POST /v1/collections/col_1/documents',
    body: { file_id: 'file_1', external_id: 'contract-7', on_conflict: 'replace' },
    status: 200,
    variables: { input: { collectionId: 'col_1', fileId: 'file_1', externalId: 'contract-7', onConflict: 'REPLACE' } },
    expected: { ...documentObject, outcome: 'unchanged' },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_1/text?page_start=2&length=4',
    variables: { id: 'doc_1', pageStart: 2, length: 4 },
    expected: {
      object: 'document_text',
      document_id: 'doc_1',
      document_status: 'ready',
      text: 'Sur.',
      char_start: 4,
      char_end: 8,
      total_chars: 20,
      next_offset: 8,
      pages: [{ page: 2, char_start: 4, char_end: 8 }],
    },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_2/text',
    expected: {
      object: 'document_text',
      document_id: 'doc_2',
      document_status: 'queued',
      text: '',
      char_start: 0,
      char_end: 0,
      total_chars: 0,
      next_offset: null,
      pages: [],
    },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_1/chunks?limit=1',
    variables: { id: 'doc_1', first: 1 },
    expected: { ...list(chunkObject), document_status: 'ready' },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_1/chunks?limit=1&page_boxes=true',
    variables: { id: 'doc_1', first: 1 },
    expected: { ...list({ ...chunkObject, page_boxes: pageBoxes }), document_status: 'ready' },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_1/versions',
    expected: {
      object: 'list',
      data: [
        { object: 'document_version', version: 1, file_id: null, file_name: 'a.txt', created_at: AT_SECONDS, replaced_at: AT_SECONDS },
      ],
    },
  },
  {
    request: 'GET /v1/collections/col_1/documents/doc_1/similar',
    variables: { id: 'doc_1', first: 10 },
    expected: { object: 'list', data: [{ object: 'similar_document', similarity: 0.9, document: replacedObject }] },
  },
  {
    request: 'POST /v1/collections/col_1/documents/attach',
    body: { documents: [{ file_id: 'file_1', on_conflict: 'keep_both' }, { file_id: 'file_2' }] },
    variables: { input: { collectionId: 'col_1', documents: [{ fileId: 'file_1', onConflict: 'KEEP_BOTH' }, { fileId: 'file_2' }] } },
    expected: {
      object: 'list',
      data: [
        { object: 'document_result', file_id: 'file_1', created: true, outcome: 'created', document: documentObject, error: null },
        {
          object: 'document_result',
          file_id: 'file_2',
          created: false,
          outcome: null,
          document: null,
          error: { code: 'not_found', message: 'No file.', param: 'file_id' },
        },
      ],
    },
  },
  {
    request: 'POST /v1/collections/col_1/documents/retry',
    body: { document_ids: ['doc_1'] },
    variables: { input: { collectionId: 'col_1', ids: ['doc_1'] } },
    expected: { object: 'list', data: [{ object: 'document_result', document_id: 'doc_1', document: documentObject, error: null }] },
  },
  {
    request: 'POST /v1/collections/col_1/documents/delete',
    body: { document_ids: ['doc_1', 'doc_2'] },
    variables: { input: { collectionId: 'col_1', ids: ['doc_1', 'doc_2'] } },
    expected: {
      object: 'list',
      data: [
        { object: 'document_result', document_id: 'doc_1', deleted: true, error: null },
        { object: 'document_result', document_id: 'doc_2', deleted: false, error: { code: 'not_found', message: 'No file.', param: null } },
      ],
    },
  },
  { request: 'DELETE /v1/collections/col_1/documents/doc_1', expected: { id: 'doc_1', object: 'document', deleted: true } },
  { request: 'GET /v1/models', expected: list(modelObject, false) },
  { request: 'GET /v1/models/meta%2Fllama', variables: { id: 'meta/llama' }, expected: modelObject },
  { request: 'GET /v1/models/meta/llama', variables: { id: 'meta/llama' }, expected: modelObject },
  {
    request: 'POST /v1/keys',
    body: {
      name: 'app',
      scopes: ['inference', 'knowledge:read'],
      requests_per_minute: 60,
      tokens_per_minute: null,
      expires_at: AT_SECONDS,
    },
    status: 201,
    variables: {
      input: { name: 'app', scopes: ['INFERENCE', 'KNOWLEDGE_READ'], requestsPerMinute: 60, tokensPerMinute: null, expiresAt: AT },
    },
    expected: { ...keyObject, key: 'kis_live_secret' },
  },
  { request: 'GET /v1/keys', expected: list(keyObject) },
  { request: 'GET /v1/keys/key_1', expected: keyObject },
  {
    request: 'PATCH /v1/keys/key_1',
    body: { model_allowlist: null },
    variables: { input: { id: 'key_1', modelAllowlist: null } },
    expected: keyObject,
  },
  { request: 'POST /v1/keys/key_1/rotate', expected: { ...keyObject, key: 'kis_live_other' } },
  { request: 'DELETE /v1/keys/key_1', expected: { id: 'key_1', object: 'key', deleted: true } },
  {
    request: 'PATCH /v1/members/mem_1',
    body: { role: 'viewer' },
    variables: { input: { id: 'mem_1', role: 'VIEWER' } },
    expected: { ...memberObject, created_key_ids: ['key_2'] },
  },
  {
    request: 'GET /v1/organization',
    expected: {
      ...organizationObject,
      quota: { storage_bytes: { used: 5, limit: 10 }, vectors: { used: 1, limit: null }, ocr_pages: { used: 3, limit: 100 } },
    },
  },
  {
    request: 'PATCH /v1/organization',
    body: { residency_policy: 'local_only' },
    variables: { input: { residencyPolicy: 'LOCAL_ONLY' } },
    expected: {
      ...organizationObject,
      quota: { storage_bytes: { used: 5, limit: 10 }, vectors: { used: 1, limit: null }, ocr_pages: { used: 3, limit: 100 } },
    },
  },
  {
    request: 'GET /v1/wallet',
    expected: { id: 'org_1', object: 'wallet', created_at: AT_SECONDS, balance_usd: '112.5', held_usd: '2.5', available_usd: '110' },
  },
  {
    request: 'GET /v1/wallet/entries?after=MTM',
    variables: { first: 20, after: 'MTM' },
    expected: { ...list(entryObject), last_id: 'MTI' },
  },
  {
    request: `GET /v1/usage?model=m&since=${AT_SECONDS}`,
    variables: { first: 20, filter: { modelId: 'm', since: AT } },
    expected: { ...list(usageObject), last_id: 'MTI' },
  },
  {
    request: `GET /v1/usage/summary?group_by=model,day,hour&operation=chat_completion&until=${AT_SECONDS}`,
    variables: { groupBy: ['MODEL', 'DAY', 'HOUR'], filter: { operation: 'CHAT_COMPLETION', until: AT } },
    expected: {
      object: 'usage_summary',
      since: AT_SECONDS,
      until: AT_SECONDS,
      total: sumsObject,
      data: [{ object: 'usage_group', model: 'm', key_id: null, day: AT_SECONDS, hour: AT_SECONDS, operation: null, ...sumsObject }],
    },
  },
  {
    request: 'POST /v1/organizations',
    body: { name: 'Acme', plan: 'self-hosted' },
    status: 201,
    variables: { input: { name: 'Acme', plan: 'self-hosted' } },
    expected: { ...managedObject, key: 'kis_live_first' },
  },
  { request: 'GET /v1/organizations', expected: list(managedObject) },
  {
    request: 'PATCH /v1/organizations/org_1',
    body: { plan: 'self-hosted' },
    variables: { input: { organizationId: 'org_1', plan: 'self-hosted' } },
    expected: managedObject,
  },
  {
    request: 'POST /v1/organizations/org_1/top-ups',
    body: { amount_usd: '12.50', reference: 'inv-1' },
    status: 201,
    variables: { input: { organizationId: 'org_1', amount: '12.50', reference: 'inv-1' } },
    expected: entryObject,
  },
  {
    request: 'GET /v1/documents?status=failed&limit=1',
    variables: { first: 1, status: 'FAILED' },
    expected: list(documentObject),
  },
  {
    request: 'GET /v1/key',
    expected: {
      ...keyObject,
      organization_id: 'org_1',
      member: {
        ...memberObject,
        memberships: [{ organization_id: 'org_1', organization_name: 'Acme', role: 'viewer', last_seen_at: AT_SECONDS }],
      },
    },
  },
  {
    request: 'GET /v1/organization/residency-effects?policy=local_only',
    variables: { policy: 'LOCAL_ONLY' },
    expected: {
      object: 'residency_effects',
      policy: 'local_only',
      residencies: ['local'],
      permitted_models: [],
      forbidden_models: [modelObject],
    },
  },
  {
    request: 'GET /v1/plans',
    expected: {
      ...{ object: 'list', has_more: false, first_id: 'self-hosted', last_id: 'self-hosted' },
      data: [{ object: 'plan', code: 'self-hosted', limits: { ...limits, vectors: 7 } }],
    },
  },
  {
    request: 'GET /v1/ingestion-queues',
    expected: {
      ...{ object: 'list', has_more: true, first_id: 'org_1', last_id: 'org_5' },
      data: [{ object: 'ingestion_queue', organization_id: 'org_1', due: 2, under_way: 1, due_since: AT_SECONDS }],
    },
  },
  {
    request: 'GET /v1/ingestion-queues?after=org_5',
    variables: { after: 'org_5' },
    expected: { object: 'list', data: [], has_more: false, first_id: null, last_id: null },
  },
  {
    request: 'GET /v1/health',
    expected: {
      ...{ object: 'list', has_more: false, first_id: 'billing', last_id: 'knowledge' },
      data: [
        { object: 'part_health', part: 'billing', is_ready: true, problems: [] },
        { object: 'part_health', part: 'inference', is_ready: false, problems: ['engine: not there'] },
        { object: 'part_health', part: 'knowledge', is_ready: false, problems: ['knowledge is unavailable at the moment.'] },
      ],
    },
  },
  {
    request: 'GET /v1/agents/agt_1/threads?limit=1&order=asc',
    variables: { id: 'agt_1', first: 1, order: 'ASC' },
    expected: list(threadObject),
  },
  { request: 'GET /v1/threads/thr_1', expected: { ...threadObject, messages: [{ role: 'user', content: 'When?' }] } },
  {
    request: 'POST /v1/organizations/org_1/adjustments',
    body: { amount_usd: '-1', reference: 'inv-1' },
    status: 201,
    expected: entryObject,
  },
]

describe('Objects over REST', () => {
  for (const { request, body, status = 200, variables, expected } of cases) {
    it(`${request} returns ${status} with the object in snake case`, async () => {
      await using adapter = await startAdapter(handlers)
      const [method, path] = request.split(' ') as [string, string]
      const response = await adapter.fetch(path, { method, body })
      expect(await response.json()).toEqual(expected)
      expect(response.status).toBe(status)
      expect(findFault(method, path.split('?')[0]!.replace('meta/llama', 'meta'), status, expected)).toBe('')
      if (variables) expect(adapter.gateway.received.at(-1)?.variables).toEqual(variables)
    })
  }

  it('returns the chunks of a search with their source files', async () => {
    const chunk = {
      id: 'chk_1',
      text: 'ثلاثون يوما',
      headingPath: ['Leave'],
      pageStart: 2,
      pageEnd: 2,
      charStart: 10,
      charEnd: 21,
      document: { id: 'doc_1', name: 'a.pdf', status: 'PROCESSING' },
      file: { id: 'file_1' },
    }
    const { document, file: _file, ...chunkFields } = chunk
    const hit = {
      collectionId: 'col_1',
      score: 0.9,
      relevance: 'STRONG',
      lexicalRank: null,
      vectorRank: 1,
      highlights: [{ start: 0, end: 6 }],
      chunk,
    }
    const found = {
      hits: [{ ...hit, before: [], after: [{ ...chunkFields, id: 'chk_2' }] }],
      groups: [{ document, hits: [{ chunk: { id: 'chk_1' } }] }],
      facets: [{ field: 'language', values: [{ value: 'ar', documents: 1 }] }],
      rerank: { model: { id: 'rank' }, applied: false, error: 'engine_timeout' },
      rewrite: null,
    }
    await using adapter = await startAdapter({
      Search: () => ({ searchCollection: found }),
      SearchWithBoxes: () => ({
        searchCollection: { ...found, hits: found.hits.map((hit) => ({ ...hit, chunk: { ...hit.chunk, pageBoxes } })) },
      }),
    })
    const body = {
      query: 'leave',
      limit: 3,
      mode: 'vector',
      filter: { language: 'ar' },
      rerank_model: null,
      group_by: 'document',
      expand: 1,
    }
    const response = await adapter.fetch('/v1/collections/col_1/search', { body })
    const input = {
      query: 'leave',
      limit: 3,
      mode: 'VECTOR',
      filter: { language: 'ar' },
      rerankModel: null,
      groupBy: 'DOCUMENT',
      expand: 1,
    }
    expect(adapter.gateway.received[0]?.variables).toEqual({ input: { collectionId: 'col_1', ...input } })
    const several = await adapter.fetch('/v1/search', { body: { ...body, collection_ids: ['col_1', 'col_2'] } })
    expect(adapter.gateway.received[1]?.variables).toEqual({ input: { collectionIds: ['col_1', 'col_2'], ...input } })
    const result = {
      object: 'search_result',
      chunk_id: 'chk_1',
      text: 'ثلاثون يوما',
      score: 0.9,
      relevance: 'strong',
      lexical_rank: null,
      vector_rank: 1,
      heading_path: ['Leave'],
      page_start: 2,
      page_end: 2,
      char_start: 10,
      char_end: 21,
      document_id: 'doc_1',
      document_status: 'processing',
      file: { id: 'file_1', file_name: 'a.pdf' },
      collection_id: 'col_1',
      highlights: [{ start: 0, end: 6 }],
      before: [],
      after: [
        { chunk_id: 'chk_2', text: 'ثلاثون يوما', heading_path: ['Leave'], page_start: 2, page_end: 2, char_start: 10, char_end: 21 },
      ],
    }
    const expected = {
      ...{ object: 'list', data: [result], has_more: false, first_id: 'chk_1', last_id: 'chk_1' },
      groups: [{ document_id: 'doc_1', chunk_ids: ['chk_1'] }],
      facets: [{ field: 'language', values: [{ value: 'ar', documents: 1 }] }],
      rerank: { model: 'rank', applied: false, error: 'engine_timeout' },
      rewrite: null,
    }
    expect(await response.json()).toEqual(expected)
    expect(findFault('POST', '/v1/collections/col_1/search', 200, expected)).toBe('')
    expect(await several.json()).toEqual(expected)
    const placed = await adapter.fetch('/v1/collections/col_1/search', { body: { ...body, page_boxes: true } })
    expect(adapter.gateway.received[2]?.variables).toEqual({ input: { collectionId: 'col_1', ...input } })
    const withBoxes = { ...expected, data: expected.data.map((hit) => ({ ...hit, page_boxes: pageBoxes })) }
    expect(await placed.json()).toEqual(withBoxes)
    expect(findFault('POST', '/v1/collections/col_1/search', 200, withBoxes)).toBe('')
  })

  for (const path of [
    '/v1/collections/col_2',
    '/v1/collections/col_2/documents',
    '/v1/collections/col_1/documents/doc_2',
    '/v1/collections/col_2/documents/doc_1',
    '/v1/files/file_2',
    '/v1/keys/key_2',
    '/v1/agents/agt_2/threads',
    '/v1/threads/thr_2',
  ]) {
    it(`GET ${path} is not_found when the object does not exist`, async () => {
      await using adapter = await startAdapter(handlers)
      expect(await readError(await adapter.fetch(path))).toMatchObject({ status: 404, code: 'not_found', shouldRetry: 'false' })
    })
  }

  it('requires a missing query parameter, and no rights for health beyond the key', async () => {
    const refuse = () => {
      throw new KisError('permission_denied', 'The key lacks the scope `operator`.')
    }
    await using adapter = await startAdapter({ ...handlers, KnowledgeHealth: refuse })
    const fault = await readError(await adapter.fetch('/v1/organization/residency-effects'))
    expect(fault).toMatchObject({ status: 400, code: 'missing_required_parameter' })
    expect(await readError(await adapter.fetch('/v1/health'))).toMatchObject({ status: 403, code: 'permission_denied' })
  })

  it('ignores a document that is requested in another collection', async () => {
    await using adapter = await startAdapter(handlers)
    const response = await adapter.fetch('/v1/collections/col_2/documents/doc_1', { method: 'DELETE' })
    expect(await readError(response)).toMatchObject({ status: 404, code: 'not_found' })
    expect(adapter.gateway.received.map(({ name }) => name)).toEqual(['Document'])
  })

  it('reports an input error by the field name of the caller', async () => {
    await using adapter = await startAdapter({
      CreateCollection: () => {
        throw new KisError('already_exists', 'The code is taken.', { param: 'input.code' })
      },
      CreateDocument: () => {
        throw new KisError('not_found', 'No such file.', { param: 'input.fileId' })
      },
      Search: () => {
        throw new KisError('invalid_request', 'No such field.', { param: 'input.filter.filters[0].field' })
      },
      Usage: () => {
        throw new KisError('invalid_request', 'since is after until.', { param: 'filter.since' })
      },
    })
    const body = { collection_code: 'hr', collection_name: 'Handbook', embedding_model: 'm' }
    const params = [
      await adapter.fetch('/v1/collections', { body }),
      await adapter.fetch('/v1/collections/col_1/documents', { body: { file_id: 'file_1' } }),
      await adapter.fetch('/v1/collections/col_1/search', { body: { query: 'x' } }),
      await adapter.fetch('/v1/usage'),
    ].map(async (response) => (await readError(response)).param)
    expect(await Promise.all(params)).toEqual(['collection_code', 'file_id', 'filter.filters[0].field', 'since'])
  })
})
