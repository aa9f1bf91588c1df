import type { Json } from './client.ts'
import { INSTRUCTIONS, type Kind, type Possessions } from './tenant.ts'

/** What a place of a request can name: a thing of this kind, either directly or inside a value. */
export interface Naming {
  readonly kind: Kind
  readonly as?: (given: string, own: Possessions) => unknown
}

const names = (kind: Kind, as?: Naming['as']): Naming => ({ kind, ...(as && { as }) })

const inMessage = (part: (given: string) => object) => (given: string) => [{ role: 'user', content: [part(given)] }]
const filePart = (given: string) => ({ type: 'file', file: { file_id: given } })
const fileBlock = (given: string) => ({ type: 'document', source: { type: 'file', file_id: given } })
const inputFile = (given: string) => ({ type: 'input_file', file_id: given })

const definition = (node: object) => ({ nodes: [{ id: 'one', ...node }], output: '{{ nodes.one.text }}' })
const DEFINITIONS: readonly Naming[] = [
  names('collection', (given) => definition({ type: 'search', collection_id: given, query: 'harbour' })),
  names('agent', (given) => definition({ type: 'agent', agent_id: given, input: 'Hello' })),
  names('agentModel', (given) => definition({ type: 'chat', model: given, ...INSTRUCTIONS })),
]
const FILTERS: readonly Naming[] = [
  names('document', (given) => ({ document_id: given })),
  names('document', (given) => ({ op: 'in', field: 'document_id', value: [given] })),
  names('document', (given, own) => ({ op: 'or', filters: [{ document_id: given }, { document_id: own.document }] })),
]
const TOOL_CALLS: readonly Naming[] = (['searchTool', 'searchToolById', 'agentTool', 'agentToolById'] as const).map((kind) =>
  names(kind, (name) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: { query: 'harbour', input: 'Hello' } },
  })),
)
const TOOL_LIST = names('toolCursor', (cursor) => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor } }))
const CHAT_REQUEST: readonly Naming[] = [
  names('agentModel', (model) => ({ model, ...INSTRUCTIONS })),
  names('file', (given) => ({ model: 'mock-chat', messages: inMessage(filePart)(given) })),
]

/** What the parameters of a path name, by the path up to the parameter. */
export const PATHS: Readonly<Record<string, readonly Naming[]>> = {
  '/v1/collections/{id}': [names('collection')],
  '/v1/collections/{id}/documents/{document_id}': [names('document')],
  '/v1/collections/{id}/sources/{source_id}': [names('webSource')],
  '/v1/gold-questions/{id}': [names('goldQuestion')],
  '/v1/evaluations/{id}': [names('evaluation')],
  '/v1/reembeddings/{id}': [names('reembedding')],
  '/v1/files/{id}': [names('file')],
  '/v1/uploads/{id}': [names('upload')],
  '/v1/uploads/tus/{id}': [names('upload')],
  '/v1/agents/{id}': [names('agent')],
  '/v1/runs/{id}': [names('agentRun')],
  '/v1/threads/{id}': [names('thread')],
  '/v1/workflows/{id}': [names('workflow')],
  '/v1/workflow-runs/{id}': [names('workflowRun')],
  '/v1/models/{id}': [names('agentModel')],
  '/v1/keys/{id}': [names('key')],
  '/v1/webhooks/{id}': [names('webhook')],
  '/v1/webhooks/{id}/deliveries/{delivery_id}': [names('delivery')],
  '/v1/organizations/{id}': [names('organization')],
}

/** What the other places of REST requests name, by operation or for all operations with the place. */
export const REST_NAMES: Readonly<Record<string, readonly Naming[]>> = {
  'body.collection_code': [names('collectionCode')],
  'POST /v1/agents body.code': [names('agentCode')],
  'PATCH /v1/agents/{id} body.code': [names('agentCode')],
  'POST /v1/workflows body.code': [names('workflowCode')],
  'PATCH /v1/workflows/{id} body.code': [names('workflowCode')],
  'body.file_id': [names('file')],
  'body.documents[].file_id': [names('file')],
  'body.document_ids[]': [names('document')],
  'body.part_ids[]': [names('uploadPart')],
  'body.filter': FILTERS,
  'body.model': [names('agentModel')],
  'body.embedding_model': [names('agentModel')],
  'body.rerank_model': [names('agentModel')],
  'body.transcription_model': [names('agentModel')],
  'body.documents[].transcription_model': [names('agentModel')],
  'body.rewrite_model': [names('agentModel')],
  'body.model_allowlist[]': [names('agentModel')],
  'body.collection_ids[]': [names('collection')],
  'body.thread_id': [names('thread')],
  'body.definition': DEFINITIONS,
  'body.reference': [names('reference')],
  'body.messages[]': [names('file', (given) => inMessage(filePart)(given)[0])],
  'body.messages[].content[]': [names('file', fileBlock)],
  'body.input[].content[]': [names('file', inputFile)],
  'body.previous_response_id': [names('answerId')],
  'body.conversation': [names('thread')],
  'body.prompt': [names('agent', (id) => ({ id }))],
  'POST /v1/audio/transcriptions body.prompt': [],
  'POST /v1/webhooks/{id}/redeliver body.after': [names('redeliveryCursor')],
  'POST /mcp body': [...TOOL_CALLS, TOOL_LIST],
  'header.mcp-session-id': [names('mcpSession')],
  'header.idempotency-key': [names('idempotencyKey')],
  'query.model': [names('agentModel')],
  'query.key_id': [names('key')],
  'GET /v1/collections query.after': [names('collection')],
  'GET /v1/collections/{id}/documents query.after': [names('document')],
  'GET /v1/collections/{id}/sources query.after': [names('webSource')],
  'body.settings[].filter': FILTERS,
  'body.settings[].rerank_model': [names('agentModel')],
  'GET /v1/collections/{id}/gold-questions query.after': [names('goldQuestion')],
  'GET /v1/collections/{id}/evaluations query.after': [names('evaluation')],
  'GET /v1/collections/{id}/reembeddings query.after': [names('reembedding')],
  'GET /v1/collections/{id}/documents/{document_id}/chunks query.after': [names('chunk')],
  'GET /v1/files query.after': [names('file')],
  'GET /v1/agents query.after': [names('agent')],
  'GET /v1/agents/{id}/runs query.after': [names('agentRun')],
  'GET /v1/workflows query.after': [names('workflow')],
  'GET /v1/workflows/{id}/runs query.after': [names('workflowRun')],
  'GET /v1/keys query.after': [names('key')],
  'GET /v1/webhooks query.after': [names('webhook')],
  'GET /v1/webhooks/{id}/deliveries query.after': [names('deliveryCursor')],
  'GET /v1/usage query.after': [names('usageCursor')],
  'GET /v1/wallet/entries query.after': [names('entryCursor')],
  'GET /v1/organizations query.after': [names('organization')],
}

const words = (text: string) => new Set(text.trim().split(/\s+/))

/**
 * The places of REST requests that hold text and values and name nothing. The cursors of a run's events are the numbers
 * 1, 2 and 3, which name nothing outside the run.
 */
export const REST_PLAIN = words(`
  body.questions[].query body.questions[].expected[].file_name body.questions[].expected[].phrase body.settings[].label
  body.collection_name body.description body.metadata body.documents[].metadata body.external_id body.documents[].external_id body.query body.file_name body.content_base64 body.name body.instructions body.mcp_servers[].name body.mcp_servers[].url
  body.mcp_servers[].headers body.mcp_servers[].allowed_tools[] body.response_schema body.input body.inputs body.messages[].content[].type body.messages[].content[].text
  body.messages[].content[].image_url.url body.response_format body.stop[] body.tools[] body.tool_choice body.system[] body.stop_sequences[] body.thinking body.output_config
  body.input[].type body.input[].role body.input[].call_id body.input[].name body.input[].arguments body.input[].output body.input[].summary[] body.input[].encrypted_content
  body.stream_options body.tools[].type body.tools[].name body.tools[].description body.tools[].parameters body.text.format.name body.text.format.schema body.user
  body.safety_identifier body.prompt_cache_key body.prompt_cache_retention body.file body.language body.url body.documents[].text body.facets[] body.history[].content body.event_types[] body.plan query.group_by header.mcp-protocol-version
  body.filename body.mime_type body.purpose body.data body.md5
`)
export const REST_PLAIN_OF_ONE = new Set([
  'PATCH /v1/uploads/tus/{id} body',
  'GET /v1/runs/{id}/events query.after',
  'GET /v1/runs/{id}/events header.last-event-id',
  'GET /v1/workflow-runs/{id}/events query.after',
  'GET /v1/workflow-runs/{id}/events header.last-event-id',
])

const CHAT = { model: 'mock-chat', ...INSTRUCTIONS }
const MESSAGE = { ...CHAT, max_tokens: 50 }
const RESPONSE = { model: 'mock-chat', input: 'Hello' }

/** A valid body for each operation that takes one, with the caller's own things only. */
export const BODIES: Readonly<Record<string, (own: Possessions) => Json>> = {
  createCollection: () => ({ collection_code: 'made', collection_name: 'Made', embedding_model: 'mock-embed' }),
  updateCollection: () => ({ collection_name: 'Changed' }),
  createDocument: (own) => ({ file_id: own.file }),
  addGoldQuestions: () => ({ questions: [{ query: 'harbour', expected: [{ phrase: 'built' }] }] }),
  suggestGoldQuestions: (own) => ({ model: 'mock-chat', document_ids: [own.document], count: 1 }),
  startEvaluation: () => ({ settings: [{ mode: 'lexical' }] }),
  setEvaluationWatch: () => ({ settings: [{ mode: 'lexical' }] }),
  quoteReembedding: () => ({ embedding_model: 'mock-embed' }),
  startReembedding: () => ({ embedding_model: 'mock-embed' }),
  createDocuments: (own) => ({ documents: [{ file_id: own.file }] }),
  updateDocument: () => ({ metadata: { topic: 'changed' } }),
  retryDocuments: (own) => ({ document_ids: [own.document] }),
  deleteDocuments: (own) => ({ document_ids: [own.document] }),
  searchCollection: () => ({ query: 'harbour', mode: 'lexical' }),
  addSite: (own) => ({ url: own.page }),
  searchCollections: (own) => ({ collection_ids: [own.collection], query: 'harbour', mode: 'lexical' }),
  uploadFile: () => ({ file_name: 'a.txt', content_base64: 'YQ==' }),
  createUpload: () => ({ filename: 'a.txt', bytes: 1, mime_type: 'text/plain', purpose: 'assistants' }),
  addUploadPart: () => ({}),
  completeUpload: (own) => ({ part_ids: [own.uploadPart] }),
  patchTusUpload: () => ({}),
  createAgent: () => ({ code: 'made', name: 'Made', model: 'mock-chat' }),
  updateAgent: () => ({ name: 'Changed' }),
  runAgent: () => ({ input: 'Hello' }),
  createWorkflow: () => ({ code: 'made', name: 'Made', definition: definition({ type: 'template', template: 'x' }) }),
  updateWorkflow: () => ({ name: 'Changed' }),
  runWorkflow: () => ({ inputs: {}, wait: true }),
  createChatCompletion: () => CHAT,
  quoteChatCompletion: () => CHAT,
  createMessage: () => MESSAGE,
  countMessageTokens: () => MESSAGE,
  createResponse: () => RESPONSE,
  countResponseTokens: () => RESPONSE,
  createEmbeddings: () => ({ model: 'mock-embed', input: 'Hello' }),
  createRerank: () => ({ model: 'mock-rerank', query: 'harbour', documents: ['harbour'] }),
  quoteRerank: () => ({ model: 'mock-rerank', query: 'harbour', documents: ['harbour'] }),
  createRerankV2: () => ({ model: 'mock-rerank', query: 'harbour', documents: ['harbour'] }),
  createTranscription: () => ({ model: 'mock-speech' }),
  createKey: () => ({ name: 'Made', scopes: ['inference'] }),
  updateKey: () => ({ name: 'Changed' }),
  createWebhook: (own) => ({ url: own.elsewhere, event_types: ['usage.recorded'] }),
  updateWebhook: () => ({ description: 'Changed' }),
  redeliverWebhooksSince: () => ({ since: 0 }),
  updateOrganization: () => ({ name: 'Changed' }),
  createOrganization: () => ({ name: 'Made' }),
  assignPlan: () => ({ plan: 'self-hosted' }),
  topUpWallet: () => ({ amount_usd: '1', reference: 'made' }),
  adjustWallet: () => ({ amount_usd: '1', reference: 'made' }),
  postMcpMessage: () => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
}

const cursor = (kind: Kind): Naming => names(kind, (given) => Buffer.from(given).toString('base64url'))

/** What the places of GraphQL name, by their declaration. */
export const GRAPHQL_NAMES: Readonly<Record<string, readonly Naming[]>> = {
  'query.organizations.after': [cursor('organization')],
  'query.apiKey.id': [names('key')],
  'query.verifyLedger.after': [names('organization')],
  'query.verifyBlobs.after': [names('file')],
  'query.usage.after': [names('usageCursor')],
  'UsageFilter.modelId': [names('agentModel')],
  'UsageFilter.apiKeyId': [names('key')],
  'UsageSummaryFilter.modelId': [names('agentModel')],
  'UsageSummaryFilter.apiKeyId': [names('key')],
  'query.webhookEndpoints.after': [cursor('webhook')],
  'query.webhookEndpoint.id': [names('webhook')],
  'query.webhookDeliveries.endpointId': [names('webhook')],
  'query.webhookDeliveries.after': [names('deliveryCursor')],
  'query.model.id': [names('agentModel')],
  'query.quoteChatCompletion.request': CHAT_REQUEST,
  'query.agent.id': [names('agent'), names('agentModel')],
  'query.agents.after': [cursor('agent')],
  'query.agentRun.id': [names('agentRun')],
  'query.workflow.id': [names('workflow'), names('workflowCode')],
  'query.workflows.after': [cursor('workflow')],
  'query.workflowRun.id': [names('workflowRun')],
  'query.collection.id': [names('collection')],
  'query.collectionByCode.code': [names('collectionCode')],
  'query.collections.after': [cursor('collection')],
  'query.file.id': [names('file')],
  'query.files.after': [cursor('file')],
  'query.document.id': [names('document')],
  'query.evaluation.id': [names('evaluation')],
  'AddGoldQuestionsInput.collectionId': [names('collection')],
  'mutation.deleteGoldQuestion.id': [names('goldQuestion')],
  'SuggestGoldQuestionsInput.collectionId': [names('collection')],
  'SuggestGoldQuestionsInput.documentIds': [names('document', (given) => [given])],
  'SuggestGoldQuestionsInput.model': [names('agentModel')],
  'StartEvaluationInput.collectionId': [names('collection')],
  'SetEvaluationWatchInput.collectionId': [names('collection')],
  'mutation.deleteEvaluationWatch.collectionId': [names('collection')],
  'EvaluationSettingsInput.filter': FILTERS,
  'EvaluationSettingsInput.rerankModel': [names('agentModel')],
  'mutation.deleteEvaluation.id': [names('evaluation')],
  'query.reembedding.id': [names('reembedding')],
  'ReembeddingInput.collectionId': [names('collection')],
  'ReembeddingInput.embeddingModel': [names('agentModel')],
  'mutation.cancelReembedding.id': [names('reembedding')],
  'SearchInput.collectionId': [names('collection')],
  'SearchInput.collectionIds': [names('collection', (given) => [given])],
  'SearchInput.rerankModel': [names('agentModel')],
  'SearchInput.rewriteModel': [names('agentModel')],
  'SearchInput.filter': FILTERS,
  'query.fileContent.id': [names('file')],
  'CreateApiKeyInput.modelAllowlist': [names('agentModel', (given) => [given])],
  'UpdateApiKeyInput.id': [names('key')],
  'UpdateApiKeyInput.modelAllowlist': [names('agentModel', (given) => [given])],
  'mutation.rotateApiKey.id': [names('key')],
  'mutation.revokeApiKey.id': [names('key')],
  'AssignPlanInput.organizationId': [names('organization')],
  'UpdateWebhookEndpointInput.id': [names('webhook')],
  'mutation.deleteWebhookEndpoint.id': [names('webhook')],
  'mutation.rotateWebhookSecret.id': [names('webhook')],
  'mutation.pingWebhookEndpoint.id': [names('webhook')],
  'RedeliverWebhookInput.endpointId': [names('webhook')],
  'RedeliverWebhookInput.id': [names('delivery')],
  'RedeliverWebhooksSinceInput.endpointId': [names('webhook')],
  'RedeliverWebhooksSinceInput.after': [names('redeliveryCursor')],
  'TopUpWalletInput.organizationId': [names('organization')],
  'TopUpWalletInput.reference': [names('reference')],
  'AdjustWalletInput.organizationId': [names('organization')],
  'AdjustWalletInput.reference': [names('reference')],
  'ChatCompletionInput.request': CHAT_REQUEST,
  'ChatCompletionInput.idempotencyKey': [names('idempotencyKey')],
  'EmbeddingsInput.model': [names('agentModel')],
  'RerankInput.model': [names('agentModel')],
  'RerankQuoteInput.model': [names('agentModel')],
  'RerankInput.idempotencyKey': [names('idempotencyKey')],
  'EmbeddingsInput.idempotencyKey': [names('idempotencyKey')],
  'TranscriptionInput.model': [names('agentModel')],
  'TranscriptionInput.idempotencyKey': [names('idempotencyKey')],
  'CreateAgentInput.code': [names('agentCode')],
  'CreateAgentInput.model': [names('agentModel')],
  'CreateAgentInput.collectionIds': [names('collection', (given) => [given])],
  'UpdateAgentInput.id': [names('agent')],
  'UpdateAgentInput.code': [names('agentCode')],
  'UpdateAgentInput.model': [names('agentModel')],
  'UpdateAgentInput.collectionIds': [names('collection', (given) => [given])],
  'mutation.deleteAgent.id': [names('agent')],
  'RunAgentInput.agentId': [names('agent')],
  'RunAgentInput.messages': [names('file', inMessage(filePart))],
  'RunAgentInput.threadId': [names('thread')],
  'RunAgentInput.idempotencyKey': [names('idempotencyKey')],
  'mutation.cancelAgentRun.id': [names('agentRun')],
  'mutation.deleteAgentRun.id': [names('agentRun')],
  'mutation.deleteThread.id': [names('thread')],
  'CreateWorkflowInput.code': [names('workflowCode')],
  'CreateWorkflowInput.definition': DEFINITIONS,
  'UpdateWorkflowInput.id': [names('workflow')],
  'UpdateWorkflowInput.code': [names('workflowCode')],
  'UpdateWorkflowInput.definition': DEFINITIONS,
  'mutation.deleteWorkflow.id': [names('workflow')],
  'RunWorkflowInput.workflowId': [names('workflow')],
  'RunWorkflowInput.idempotencyKey': [names('idempotencyKey')],
  'mutation.cancelWorkflowRun.id': [names('workflowRun')],
  'mutation.deleteWorkflowRun.id': [names('workflowRun')],
  'CreateCollectionInput.code': [names('collectionCode')],
  'CreateCollectionInput.embeddingModel': [names('agentModel')],
  'CreateCollectionInput.rerankModel': [names('agentModel')],
  'CreateCollectionInput.transcriptionModel': [names('agentModel')],
  'UpdateCollectionInput.rerankModel': [names('agentModel')],
  'UpdateCollectionInput.transcriptionModel': [names('agentModel')],
  'UpdateCollectionInput.id': [names('collection')],
  'UpdateCollectionInput.code': [names('collectionCode')],
  'mutation.deleteCollection.id': [names('collection')],
  'mutation.deleteFile.id': [names('file')],
  'query.upload.id': [names('upload')],
  'query.webSource.id': [names('webSource')],
  'CreateWebDocumentInput.collectionId': [names('collection')],
  'AddSiteInput.collectionId': [names('collection')],
  'mutation.refreshWebSource.id': [names('webSource')],
  'mutation.deleteWebSource.id': [names('webSource')],
  'Collection.sources.after': [cursor('webSource')],
  'CreateUploadInput.partOf': [names('upload')],
  'AppendToUploadInput.id': [names('upload'), names('uploadPart')],
  'CompleteUploadInput.id': [names('upload')],
  'CompleteUploadInput.partIds': [names('uploadPart', (given) => [given])],
  'mutation.cancelUpload.id': [names('upload'), names('uploadPart')],
  'CreateDocumentInput.collectionId': [names('collection')],
  'CreateDocumentInput.fileId': [names('file')],
  'CreateDocumentInput.transcriptionModel': [names('agentModel')],
  'CreateDocumentsInput.collectionId': [names('collection')],
  'AttachedFileInput.fileId': [names('file')],
  'AttachedFileInput.transcriptionModel': [names('agentModel')],
  'UpdateDocumentInput.id': [names('document')],
  'DocumentsInput.collectionId': [names('collection')],
  'DocumentsInput.ids': [names('document', (given) => [given])],
  'mutation.retryDocument.id': [names('document')],
  'mutation.deleteDocument.id': [names('document')],
  'VerifyIndexInput.collectionId': [names('collection')],
  'VerifyIndexInput.after': [names('collection')],
  'mutation.rebuildIndex.after': [names('collection')],
  'subscription.agentRunEvents.runId': [names('agentRun')],
  'subscription.workflowRunEvents.runId': [names('workflowRun')],
  'subscription.documentUpdated.collectionId': [names('collection')],
  'Agent.runs.after': [cursor('agentRun')],
  'Collection.documents.after': [cursor('document')],
  'Collection.goldQuestions.after': [cursor('goldQuestion')],
  'Collection.evaluations.after': [cursor('evaluation')],
  'Collection.reembeddings.after': [cursor('reembedding')],
  'Document.chunks.after': [cursor('chunk')],
  'Organization.apiKeys.after': [cursor('key')],
  'Wallet.entries.after': [names('entryCursor')],
  'Workflow.runs.after': [cursor('workflowRun')],
}

/**
 * The places of GraphQL that hold text and values and name nothing. The cursors of events are the numbers 1, 2 and 3 of
 * a run, or of the caller's organization.
 */
export const GRAPHQL_PLAIN = words(`
  SearchInput.query SearchInput.facets SearchMessage.content GoldQuestionInput.query ExpectedPassageInput.fileName ExpectedPassageInput.phrase EvaluationSettingsInput.label CreateApiKeyInput.name UpdateApiKeyInput.name UpdateOrganizationInput.name CreateOrganizationInput.name CreateOrganizationInput.plan AssignPlanInput.plan
  CreateWebhookEndpointInput.url CreateWebhookEndpointInput.eventTypes CreateWebhookEndpointInput.description UpdateWebhookEndpointInput.url UpdateWebhookEndpointInput.eventTypes
  UpdateWebhookEndpointInput.description EmbeddingsInput.input EmbeddingsInput.user RerankInput.query RerankInput.documents RerankQuoteInput.query RerankQuoteInput.documents TranscriptionInput.contentBase64 TranscriptionInput.language TranscriptionInput.prompt
  CreateAgentInput.name CreateAgentInput.instructions AgentMcpServerInput.name AgentMcpServerInput.url AgentMcpServerInput.headers AgentMcpServerInput.allowedTools
  CreateAgentInput.responseSchema UpdateAgentInput.name UpdateAgentInput.instructions UpdateAgentInput.responseSchema RunAgentInput.input CreateWorkflowInput.name
  UpdateWorkflowInput.name RunWorkflowInput.inputs CreateCollectionInput.name CreateCollectionInput.description UpdateCollectionInput.name UpdateCollectionInput.description
  query.verifyBillingFiles.after query.verifyInferenceFiles.after query.verifyKnowledgeFiles.after
  CreateWebDocumentInput.url CreateWebDocumentInput.metadata AddSiteInput.url AddSiteInput.metadata
  UploadFileInput.name UploadFileInput.contentBase64 CreateDocumentInput.metadata AttachedFileInput.metadata CreateDocumentInput.externalId AttachedFileInput.externalId UpdateDocumentInput.name UpdateDocumentInput.metadata subscription.usageRecorded.after subscription.walletChanged.after
  CreateUploadInput.name CreateUploadInput.metadata AppendToUploadInput.contentBase64 CompleteUploadInput.md5
  subscription.agentRunEvents.after subscription.workflowRunEvents.after subscription.documentUpdated.after
`)

/** Valid arguments for each root field with places, with the caller's own things only. */
export const ARGUMENTS: Readonly<Record<string, (own: Possessions) => Json>> = {
  organizations: () => ({}),
  apiKey: (own) => ({ id: own.key }),
  usage: () => ({ first: 2 }),
  verifyLedger: () => ({}),
  verifyBlobs: () => ({}),
  verifyBillingFiles: () => ({}),
  verifyInferenceFiles: () => ({}),
  verifyKnowledgeFiles: () => ({}),
  usageSummary: () => ({ groupBy: ['MODEL'] }),
  webhookEndpoints: () => ({}),
  webhookEndpoint: (own) => ({ id: own.webhook }),
  webhookDeliveries: (own) => ({ endpointId: own.webhook, first: 2 }),
  model: () => ({ id: 'mock-chat' }),
  quoteChatCompletion: () => ({ request: CHAT }),
  quoteRerank: () => ({ input: { model: 'mock-rerank', query: 'harbour', documents: ['harbour'] } }),
  agent: (own) => ({ id: own.agent }),
  agents: () => ({}),
  agentRun: (own) => ({ id: own.agentRun }),
  workflow: (own) => ({ id: own.workflow }),
  workflows: () => ({}),
  workflowRun: (own) => ({ id: own.workflowRun }),
  collection: (own) => ({ id: own.collection }),
  collectionByCode: (own) => ({ code: own.collectionCode }),
  collections: () => ({}),
  file: (own) => ({ id: own.file }),
  files: () => ({}),
  document: (own) => ({ id: own.document }),
  evaluation: (own) => ({ id: own.evaluation }),
  reembedding: (own) => ({ id: own.reembedding }),
  quoteReembedding: (own) => ({ input: { collectionId: own.collection, embeddingModel: 'mock-embed' } }),
  searchCollection: (own) => ({ input: { collectionId: own.collection, query: 'harbour', mode: 'LEXICAL' } }),
  fileContent: (own) => ({ id: own.file, offset: 0, length: 10 }),
  createApiKey: () => ({ input: { name: 'Made', scopes: ['INFERENCE'] } }),
  updateApiKey: (own) => ({ input: { id: own.key, name: 'Changed' } }),
  rotateApiKey: (own) => ({ id: own.key }),
  revokeApiKey: (own) => ({ id: own.key }),
  updateOrganization: () => ({ input: { name: 'Changed' } }),
  createOrganization: () => ({ input: { name: 'Made' } }),
  assignPlan: (own) => ({ input: { organizationId: own.organization, plan: 'self-hosted' } }),
  createWebhookEndpoint: (own) => ({ input: { url: own.elsewhere, eventTypes: ['usage.recorded'] } }),
  updateWebhookEndpoint: (own) => ({ input: { id: own.webhook, description: 'Changed' } }),
  deleteWebhookEndpoint: (own) => ({ id: own.webhook }),
  rotateWebhookSecret: (own) => ({ id: own.webhook }),
  pingWebhookEndpoint: (own) => ({ id: own.webhook }),
  redeliverWebhook: (own) => ({ input: { endpointId: own.webhook, id: own.delivery } }),
  redeliverWebhooksSince: (own) => ({ input: { endpointId: own.webhook, since: '2020-01-01T00:00:00Z' } }),
  topUpWallet: (own) => ({ input: { organizationId: own.organization, amount: '1', reference: 'made' } }),
  adjustWallet: (own) => ({ input: { organizationId: own.organization, amount: '1', reference: 'made' } }),
  createChatCompletion: () => ({ input: { request: CHAT } }),
  createEmbeddings: () => ({ input: { model: 'mock-embed', input: 'Hello' } }),
  createRerank: () => ({ input: { model: 'mock-rerank', query: 'harbour', documents: ['harbour'] } }),
  createTranscription: () => ({ input: { model: 'mock-speech', contentBase64: 'UklGRg==' } }),
  createAgent: () => ({ input: { code: 'made', name: 'Made', model: 'mock-chat' } }),
  updateAgent: (own) => ({ input: { id: own.agent, name: 'Changed' } }),
  deleteAgent: (own) => ({ id: own.agent }),
  runAgent: (own) => ({ input: { agentId: own.agent, input: 'Hello' } }),
  cancelAgentRun: (own) => ({ id: own.agentRun }),
  deleteAgentRun: (own) => ({ id: own.agentRun }),
  deleteThread: (own) => ({ id: own.thread }),
  createWorkflow: () => ({ input: { code: 'made', name: 'Made', definition: definition({ type: 'template', template: 'x' }) } }),
  updateWorkflow: (own) => ({ input: { id: own.workflow, name: 'Changed' } }),
  deleteWorkflow: (own) => ({ id: own.workflow }),
  runWorkflow: (own) => ({ input: { workflowId: own.workflow, inputs: {}, wait: true } }),
  cancelWorkflowRun: (own) => ({ id: own.workflowRun }),
  deleteWorkflowRun: (own) => ({ id: own.workflowRun }),
  createCollection: () => ({ input: { code: 'made', name: 'Made', embeddingModel: 'mock-embed' } }),
  updateCollection: (own) => ({ input: { id: own.collection, name: 'Changed' } }),
  deleteCollection: (own) => ({ id: own.collection, detach: true }),
  uploadFile: () => ({ input: { name: 'a.txt', contentBase64: 'YQ==' } }),
  deleteFile: (own) => ({ id: own.file }),
  upload: (own) => ({ id: own.upload }),
  webSource: (own) => ({ id: own.webSource }),
  createWebDocument: (own) => ({ input: { collectionId: own.collection, url: own.page } }),
  addSite: (own) => ({ input: { collectionId: own.collection, url: own.page } }),
  refreshWebSource: (own) => ({ id: own.webSource }),
  deleteWebSource: (own) => ({ id: own.webSource }),
  createUpload: (own) => ({ input: { name: 'a.txt', sizeBytes: 1, partOf: own.upload } }),
  appendToUpload: (own) => ({ input: { id: own.upload, offset: 0, contentBase64: 'YQ==' } }),
  completeUpload: (own) => ({ input: { id: own.upload, partIds: [own.uploadPart] } }),
  cancelUpload: (own) => ({ id: own.upload }),
  createDocument: (own) => ({ input: { collectionId: own.collection, fileId: own.file } }),
  addGoldQuestions: (own) => ({
    input: { collectionId: own.collection, questions: [{ query: 'harbour', expected: [{ phrase: 'built' }] }] },
  }),
  suggestGoldQuestions: (own) => ({
    input: { collectionId: own.collection, documentIds: [own.document], model: 'mock-chat', count: 1 },
  }),
  deleteGoldQuestion: (own) => ({ id: own.goldQuestion }),
  startEvaluation: (own) => ({ input: { collectionId: own.collection, settings: [{ mode: 'LEXICAL' }] } }),
  deleteEvaluation: (own) => ({ id: own.evaluation }),
  setEvaluationWatch: (own) => ({ input: { collectionId: own.collection, settings: [{ mode: 'LEXICAL' }] } }),
  deleteEvaluationWatch: (own) => ({ collectionId: own.collection }),
  startReembedding: (own) => ({ input: { collectionId: own.collection, embeddingModel: 'mock-embed' } }),
  cancelReembedding: (own) => ({ id: own.reembedding }),
  createDocuments: (own) => ({ input: { collectionId: own.collection, documents: [{ fileId: own.file }] } }),
  updateDocument: (own) => ({ input: { id: own.document, metadata: { topic: 'changed' } } }),
  retryDocument: (own) => ({ id: own.document }),
  retryDocuments: (own) => ({ input: { collectionId: own.collection, ids: [own.document] } }),
  deleteDocuments: (own) => ({ input: { collectionId: own.collection, ids: [own.document] } }),
  deleteDocument: (own) => ({ id: own.document }),
  verifyIndex: (own) => ({ input: { collectionId: own.collection, repair: false } }),
  rebuildIndex: () => ({}),
  usageRecorded: () => ({}),
  walletChanged: () => ({}),
  chatCompletion: () => ({ input: { request: { ...CHAT, stream: true } } }),
  transcription: () => ({ input: { model: 'mock-speech', contentBase64: 'UklGRg==' } }),
  agentRunEvents: (own) => ({ runId: own.agentRun }),
  workflowRunEvents: (own) => ({ runId: own.workflowRun }),
  documentUpdated: () => ({ after: '0' }),
}
/** Arguments of subscriptions whose names are also the names of queries. */
export const SUBSCRIPTION_ARGUMENTS: typeof ARGUMENTS = {
  agentRun: (own) => ({ input: { agentId: own.agent, input: 'Hello' } }),
  workflowRun: (own) => ({ input: { workflowId: own.workflow, inputs: {} } }),
}

/** The query around a field below the roots, with `FIELD` in its place. */
export const WAYS: Readonly<Record<string, (own: Possessions) => string>> = {
  'Agent.runs': (own) => `{ agent(id: "${own.agent}") { FIELD } }`,
  'Document.chunks': (own) => `{ document(id: "${own.document}") { FIELD } }`,
  'Collection.documents': (own) => `{ collection(id: "${own.collection}") { FIELD } }`,
  'Collection.sources': (own) => `{ collection(id: "${own.collection}") { FIELD } }`,
  'Collection.goldQuestions': (own) => `{ collection(id: "${own.collection}") { FIELD } }`,
  'Collection.reembeddings': (own) => `{ collection(id: "${own.collection}") { FIELD } }`,
  'Collection.evaluations': (own) => `{ collection(id: "${own.collection}") { FIELD } }`,
  'Organization.apiKeys': () => '{ organization { FIELD } }',
  'Wallet.entries': () => '{ organization { wallet { FIELD } } }',
  'Workflow.runs': (own) => `{ workflow(id: "${own.workflow}") { FIELD } }`,
}

/** The depth of the selection of an inner field with arguments. */
export const INNER_DEPTH = 2
