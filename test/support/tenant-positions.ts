import type { Json } from './client.ts'
import { INSTRUCTIONS, type Kind, type Possessions } from './tenant.ts'

/** What a place of a request can name: a thing of this kind, either directly or inside a value. */
export interface Naming {
  readonly kind: Kind
  readonly as?: (id: string, own: Possessions) => unknown
}

/** What `node` finds. */
export const NODE_KINDS = [
  ...(['collection', 'file', 'document', 'chunk', 'goldQuestion', 'evaluation', 'reembedding', 'webSource', 'upload'] as const),
  ...(['agent', 'agentRun', 'thread', 'workflow', 'workflowRun'] as const),
  ...(['organization', 'wallet', 'key', 'member', 'invitation', 'webhook', 'delivery', 'usageRecord', 'ledgerEntry'] as const),
] as const satisfies readonly Kind[]

const names = (kind: Kind, as?: Naming['as']): Naming => ({ kind, ...(as && { as }) })

const cursor = (kind: Kind): Naming => names(kind, (id) => Buffer.from(id).toString('base64url'))

/** Pairs of a place and its kind, from the places of each kind, divided by commas. */
const listed = (positions: Partial<Record<Kind, string>>) =>
  Object.entries(positions).flatMap(([kind, text]) =>
    text
      .trim()
      .split(/,\s+/)
      .map((position) => [position, kind as Kind] as const),
  )
const table = (positions: Partial<Record<Kind, string>>, naming = (kind: Kind) => names(kind)) =>
  Object.fromEntries(listed(positions).map(([position, kind]) => [position, [naming(kind)]]))
/** Lists, whose `after` and `before` are cursors. */
const bothWays = (lists: Partial<Record<Kind, string>>) => ({
  ...Object.fromEntries(listed(lists).map(([list, kind]) => [`${list}.after`, [cursor(kind)]])),
  ...Object.fromEntries(listed(lists).map(([list, kind]) => [`${list}.before`, [cursor(kind)]])),
})

const inMessage = (part: (id: string) => object) => (id: string) => [{ role: 'user', content: [part(id)] }]
const filePart = (id: string) => ({ type: 'file', file: { file_id: id } })
const fileBlock = (id: string) => ({ type: 'document', source: { type: 'file', file_id: id } })
const inputFile = (id: string) => ({ type: 'input_file', file_id: id })

const definition = (node: object) => ({ nodes: [{ id: 'one', ...node }], output: '{{ nodes.one.text }}' })
const DEFINITIONS: readonly Naming[] = [
  names('collection', (id) => definition({ type: 'search', collection_id: id, query: 'harbour' })),
  names('agent', (id) => definition({ type: 'agent', agent_id: id, input: 'Hello' })),
  names('agentModel', (id) => definition({ type: 'chat', model: id, ...INSTRUCTIONS })),
]
const FILTERS: readonly Naming[] = [
  names('document', (id) => ({ document_id: id })),
  names('document', (id) => ({ op: 'in', field: 'document_id', value: [id] })),
  names('document', (id, own) => ({ op: 'or', filters: [{ document_id: id }, { document_id: own.document }] })),
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
  names('file', (id) => ({ model: 'mock-chat', messages: inMessage(filePart)(id) })),
]

/** What the parameters of a path name, by the path up to the parameter. */
export const PATHS: Readonly<Record<string, readonly Naming[]>> = table({
  collection: '/v1/collections/{id}',
  document: '/v1/collections/{id}/documents/{document_id}',
  webSource: '/v1/collections/{id}/sources/{source_id}',
  goldQuestion: '/v1/gold-questions/{id}',
  evaluation: '/v1/evaluations/{id}',
  reembedding: '/v1/reembeddings/{id}',
  file: '/v1/files/{id}',
  upload: '/v1/uploads/tus/{id}',
  agent: '/v1/agents/{id}',
  chatStream: '/v1/chat/completions/{id}',
  agentRun: '/v1/runs/{id}',
  thread: '/v1/threads/{id}',
  workflow: '/v1/workflows/{id}',
  workflowRun: '/v1/workflow-runs/{id}',
  agentModel: '/v1/models/{id}',
  key: '/v1/keys/{id}',
  session: '/v1/sessions/{id}',
  member: '/v1/members/{id}',
  erasure: '/v1/erasures/{id}',
  invitation: '/v1/invitations/{id}',
  webhook: '/v1/webhooks/{id}',
  delivery: '/v1/webhooks/{id}/deliveries/{delivery_id}',
  organization: '/v1/organizations/{id}',
})

/** What the other places of REST requests name, by operation or for all operations with the place. */
export const REST_NAMES: Readonly<Record<string, readonly Naming[]>> = {
  ...table({
    collectionCode: 'body.collection_code',
    agentCode: 'POST /v1/agents body.code, PATCH /v1/agents/{id} body.code',
    workflowCode: 'POST /v1/workflows body.code, PATCH /v1/workflows/{id} body.code',
    file: 'body.file_id, body.documents[].file_id, GET /v1/files query.after',
    document: `
      body.document_id, body.documents[].document_id, body.document_ids[], GET /v1/collections/{id}/documents query.after,
      GET /v1/documents query.after
    `,
    member: 'body.member_id, GET /v1/members query.after',
    key: 'body.key_ids[], query.key_id, GET /v1/keys query.after',
    agentModel: `
      body.model, body.embedding_model, body.rerank_model, body.transcription_model, body.documents[].transcription_model,
      body.rewrite_model, body.model_allowlist[], query.model, body.settings[].rerank_model
    `,
    collection: 'body.collection_ids[], GET /v1/collections query.after',
    thread: 'body.thread_id, body.conversation, GET /v1/agents/{id}/threads query.after',
    reference: 'body.reference',
    answerId: 'body.previous_response_id',
    redeliveryCursor: 'POST /v1/webhooks/{id}/redeliver body.after',
    mcpSession: 'header.mcp-session-id',
    idempotencyKey: 'header.idempotency-key',
    webSource: 'GET /v1/collections/{id}/sources query.after',
    goldQuestion: 'GET /v1/collections/{id}/gold-questions query.after',
    evaluation: 'GET /v1/collections/{id}/evaluations query.after',
    reembedding: 'GET /v1/collections/{id}/reembeddings query.after',
    chunk: 'GET /v1/collections/{id}/documents/{document_id}/chunks query.after',
    agent: 'GET /v1/agents query.after',
    agentRun: 'GET /v1/agents/{id}/runs query.after, GET /v1/runs query.after',
    workflow: 'GET /v1/workflows query.after',
    workflowRun: 'GET /v1/workflows/{id}/runs query.after, GET /v1/workflow-runs query.after',
    session: 'GET /v1/sessions query.after',
    erasure: 'GET /v1/erasures query.after, GET /v1/organizations/{id}/erasures query.after',
    invitation: 'GET /v1/invitations query.after',
    organization: `
      POST /v1/invitations body.organization_id, GET /v1/organizations query.after, GET /v1/ingestion-queues query.after,
      GET /v1/organizations/{id}/changes query.after
    `,
    webhook: 'GET /v1/webhooks query.after',
    deliveryCursor: 'GET /v1/webhooks/{id}/deliveries query.after',
    usageCursor: 'GET /v1/usage query.after',
    entryCursor: 'GET /v1/wallet/entries query.after, GET /v1/organizations/{id}/wallet/entries query.after',
  }),
  'body.filter': FILTERS,
  'body.definition': DEFINITIONS,
  'body.messages[].content[]': [names('file', fileBlock), names('file', filePart)],
  'body.input[].content[]': [names('file', inputFile)],
  'body.prompt': [names('agent', (id) => ({ id }))],
  'POST /v1/audio/transcriptions body.prompt': [],
  'POST /mcp body': [...TOOL_CALLS, TOOL_LIST],
  'query.request_id': [],
  'body.settings[].filter': FILTERS,
}

const words = (text: string) => new Set(text.trim().split(/\s+/))

/**
 * The places of REST requests that hold text and values and name nothing. The cursors of a run's events are the numbers
 * 1, 2 and 3, which name nothing outside the run.
 */
export const REST_PLAIN = words(`
  body.questions[].query body.questions[].expected[].file_name body.questions[].expected[].phrase body.settings[].label
  body.collection_name body.description body.metadata body.documents[].metadata body.external_id body.documents[].external_id body.query body.file_name body.content_base64 body.name body.instructions body.mcp_servers[].name body.mcp_servers[].url
  body.mcp_servers[].headers body.mcp_servers[].allowed_tools[] body.response_schema body.input body.inputs body.messages[].name body.messages[].refusal
  body.messages[].tool_calls[] body.messages[].tool_call_id body.response_format body.stop[] body.tools[] body.tool_choice body.system[] body.stop_sequences[] body.thinking body.output_config
  body.input[].role body.input[].call_id body.input[].name body.input[].arguments body.input[].output[] body.input[].summary[] body.input[].encrypted_content
  body.stream_options body.tools[].type body.tools[].name body.tools[].description body.tools[].parameters body.text.format.name body.text.format.schema body.user
  body.safety_identifier body.prompt_cache_key body.prompt_cache_retention body.file body.language body.url body.documents[].text body.facets[] body.history[].content body.event_types[] body.plan query.group_by query.name_contains header.mcp-protocol-version
  header.range header.if-range header.if-none-match header.x-request-id
  body.email
`)
export const REST_PLAIN_OF_ONE = new Set([
  'PATCH /v1/uploads/tus/{id} body',
  'GET /v1/chat/completions/{id}/events query.after',
  'GET /v1/chat/completions/{id}/events header.last-event-id',
  'GET /v1/runs/{id}/events query.after',
  'GET /v1/runs/{id}/events header.last-event-id',
  'GET /v1/workflow-runs/{id}/events query.after',
  'GET /v1/workflow-runs/{id}/events header.last-event-id',
  'GET /v1/organizations query.name',
  'GET /v1/organizations query.plan',
  'POST /v1/organizations/{id}/suspend body.reason',
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
  createInvitation: () => ({ email: 'made@example.org', role: 'viewer' }),
  updateMember: () => ({ role: 'editor' }),
  erase: () => ({}),
  createWebhook: (own) => ({ url: own.elsewhere, event_types: ['usage.recorded'] }),
  updateWebhook: () => ({ description: 'Changed' }),
  redeliverWebhooksSince: () => ({ since: 0 }),
  updateOrganization: () => ({ name: 'Changed' }),
  createOrganization: () => ({ name: 'Made' }),
  assignPlan: () => ({ plan: 'self-hosted' }),
  suspendOrganization: () => ({ reason: 'Made' }),
  topUpWallet: () => ({ amount_usd: '1', reference: 'made' }),
  adjustWallet: () => ({ amount_usd: '1', reference: 'made' }),
  postMcpMessage: () => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
}

/** What the places of GraphQL name, by their declaration. */
const NODES: readonly Naming[] = NODE_KINDS.map((kind) => names(kind))
export const GRAPHQL_NAMES: Readonly<Record<string, readonly Naming[]>> = {
  ...table({
    organization: `
      query.organization.id, InviteMemberInput.organizationId, query.verifyLedger.after, query.ingestionQueues.after,
      AssignPlanInput.organizationId, SuspendOrganizationInput.organizationId, mutation.resumeOrganization.id,
      mutation.deleteOrganization.id, TopUpWalletInput.organizationId, AdjustWalletInput.organizationId
    `,
    key: `
      query.apiKey.id, UsageFilter.apiKeyId, UsageSummaryFilter.apiKeyId, UpdateApiKeyInput.id, mutation.rotateApiKey.id,
      mutation.revokeApiKey.id
    `,
    member: 'query.member.id, EraseInput.memberId, UpdateMemberInput.id, RemoveMemberInput.id',
    erasure: 'query.erasure.id',
    document: `
      EraseInput.documentId, query.document.id, CreateDocumentInput.documentId, AttachedFileInput.documentId,
      UpdateDocumentInput.id, mutation.retryDocument.id, mutation.deleteDocument.id
    `,
    invitation: 'mutation.revokeInvitation.id',
    file: `
      query.verifyBlobs.after, query.file.id, query.fileContent.id, query.fileDownload.id, mutation.deleteFile.id,
      CreateDocumentInput.fileId, AttachedFileInput.fileId
    `,
    thread: 'query.thread.id, RunAgentInput.threadId, mutation.deleteThread.id',
    usageCursor: 'query.usage.after, query.usage.before',
    agentModel: `
      UsageFilter.modelId, UsageSummaryFilter.modelId, query.model.id, SuggestGoldQuestionsInput.model,
      EvaluationSettingsInput.rerankModel, ReembeddingInput.embeddingModel, SearchInput.rerankModel, SearchInput.rewriteModel,
      EmbeddingsInput.model, RerankInput.model, RerankQuoteInput.model, TranscriptionInput.model, CreateAgentInput.model,
      UpdateAgentInput.model, CreateCollectionInput.embeddingModel, CreateCollectionInput.rerankModel,
      CreateCollectionInput.transcriptionModel, UpdateCollectionInput.rerankModel, UpdateCollectionInput.transcriptionModel,
      CreateDocumentInput.transcriptionModel, AttachedFileInput.transcriptionModel
    `,
    webhook: `
      query.webhookEndpoint.id, query.webhookDeliveries.endpointId, UpdateWebhookEndpointInput.id,
      mutation.deleteWebhookEndpoint.id, mutation.rotateWebhookSecret.id, mutation.pingWebhookEndpoint.id,
      RedeliverWebhookInput.endpointId, RedeliverWebhooksSinceInput.endpointId
    `,
    deliveryCursor: 'query.webhookDeliveries.after, query.webhookDeliveries.before',
    agentRun: 'query.agentRun.id, mutation.cancelAgentRun.id, mutation.deleteAgentRun.id, subscription.agentRunEvents.runId',
    workflowRun: `
      query.workflowRun.id, mutation.cancelWorkflowRun.id, mutation.deleteWorkflowRun.id, subscription.workflowRunEvents.runId
    `,
    collection: `
      query.collection.id, AddGoldQuestionsInput.collectionId, SuggestGoldQuestionsInput.collectionId,
      StartEvaluationInput.collectionId, SetEvaluationWatchInput.collectionId, mutation.deleteEvaluationWatch.collectionId,
      ReembeddingInput.collectionId, SearchInput.collectionId, UpdateCollectionInput.id, mutation.deleteCollection.id,
      CreateWebDocumentInput.collectionId, AddSiteInput.collectionId, CreateDocumentInput.collectionId,
      CreateDocumentsInput.collectionId, DocumentsInput.collectionId, VerifyIndexInput.collectionId, VerifyIndexInput.after,
      mutation.rebuildIndex.after, subscription.documentUpdated.collectionId
    `,
    collectionCode: 'query.collectionByCode.code, CreateCollectionInput.code, UpdateCollectionInput.code',
    evaluation: 'query.evaluation.id, mutation.deleteEvaluation.id',
    goldQuestion: 'mutation.deleteGoldQuestion.id',
    reembedding: 'query.reembedding.id, mutation.cancelReembedding.id',
    session: 'mutation.revokeSession.id',
    delivery: 'RedeliverWebhookInput.id',
    redeliveryCursor: 'RedeliverWebhooksSinceInput.after',
    reference: 'TopUpWalletInput.reference, AdjustWalletInput.reference',
    idempotencyKey: `
      ChatCompletionInput.idempotencyKey, RerankInput.idempotencyKey, EmbeddingsInput.idempotencyKey,
      TranscriptionInput.idempotencyKey, RunAgentInput.idempotencyKey, RunWorkflowInput.idempotencyKey
    `,
    agentCode: 'CreateAgentInput.code, UpdateAgentInput.code',
    agent: 'UpdateAgentInput.id, mutation.deleteAgent.id, RunAgentInput.agentId',
    workflowCode: 'CreateWorkflowInput.code, UpdateWorkflowInput.code',
    workflow: 'UpdateWorkflowInput.id, mutation.deleteWorkflow.id, RunWorkflowInput.workflowId',
    upload: 'query.upload.id, AppendToUploadInput.id, CompleteUploadInput.id, mutation.cancelUpload.id',
    webSource: 'query.webSource.id, mutation.refreshWebSource.id, mutation.deleteWebSource.id',
    chatStream: 'subscription.chatCompletionEvents.id',
    entryCursor: 'Wallet.entries.after, Wallet.entries.before',
  }),
  ...table(
    {
      key: 'EraseInput.apiKeyIds',
      document: 'SuggestGoldQuestionsInput.documentIds, DocumentsInput.ids',
      collection: 'SearchInput.collectionIds, CreateAgentInput.collectionIds, UpdateAgentInput.collectionIds',
      agentModel: 'CreateApiKeyInput.modelAllowlist, UpdateApiKeyInput.modelAllowlist',
    },
    (kind) => names(kind, (id) => [id]),
  ),
  ...bothWays({
    organization: 'query.organizations, Organization.changes',
    erasure: 'Organization.erasures',
    member: 'Organization.members',
    invitation: 'Organization.invitations',
    session: 'query.sessions',
    document: 'query.documents, Collection.documents',
    webhook: 'query.webhookEndpoints',
    agent: 'query.agents',
    agentRun: 'query.agentRuns, Agent.runs',
    workflowRun: 'query.workflowRuns, Workflow.runs',
    workflow: 'query.workflows',
    collection: 'query.collections',
    file: 'query.files',
    webSource: 'Collection.sources',
    thread: 'Agent.threads',
    goldQuestion: 'Collection.goldQuestions',
    evaluation: 'Collection.evaluations',
    reembedding: 'Collection.reembeddings',
    chunk: 'Document.chunks',
    key: 'Organization.apiKeys',
  }),
  'query.node.id': NODES,
  'query.nodes.ids': NODES.map(({ kind }) => names(kind, (id) => [id])),
  'UsageFilter.requestId': [],
  'query.quoteChatCompletion.request': CHAT_REQUEST,
  'query.agent.id': [names('agent'), names('agentModel')],
  'query.workflow.id': [names('workflow'), names('workflowCode')],
  'EvaluationSettingsInput.filter': FILTERS,
  'SearchInput.filter': FILTERS,
  'ChatCompletionInput.request': CHAT_REQUEST,
  'RunAgentInput.messages': [names('file', inMessage(filePart))],
  'CreateWorkflowInput.definition': DEFINITIONS,
  'UpdateWorkflowInput.definition': DEFINITIONS,
}

/**
 * The places of GraphQL that hold text and values and name nothing. The cursors of events are the numbers 1, 2 and 3 of
 * a run, or of the caller's organization.
 */
export const GRAPHQL_PLAIN = words(`
  CollectionFilter.nameContains FileFilter.nameContains DocumentFilter.nameContains DocumentFilter.metadata
  SearchInput.query SearchInput.facets SearchMessage.content GoldQuestionInput.query ExpectedPassageInput.fileName ExpectedPassageInput.phrase EvaluationSettingsInput.label CreateApiKeyInput.name UpdateApiKeyInput.name InviteMemberInput.email UpdateOrganizationInput.name CreateOrganizationInput.name CreateOrganizationInput.plan AssignPlanInput.plan OrganizationFilter.name OrganizationFilter.plan SuspendOrganizationInput.reason
  CreateWebhookEndpointInput.url CreateWebhookEndpointInput.eventTypes CreateWebhookEndpointInput.description UpdateWebhookEndpointInput.url UpdateWebhookEndpointInput.eventTypes
  UpdateWebhookEndpointInput.description EmbeddingsInput.input EmbeddingsInput.user RerankInput.query RerankInput.documents RerankQuoteInput.query RerankQuoteInput.documents TranscriptionInput.contentBase64 TranscriptionInput.language TranscriptionInput.prompt
  CreateAgentInput.name CreateAgentInput.instructions AgentMcpServerInput.name AgentMcpServerInput.url AgentMcpServerInput.headers AgentMcpServerInput.allowedTools
  CreateAgentInput.responseSchema UpdateAgentInput.name UpdateAgentInput.instructions UpdateAgentInput.responseSchema RunAgentInput.input CreateWorkflowInput.name
  UpdateWorkflowInput.name RunWorkflowInput.inputs CreateCollectionInput.name CreateCollectionInput.description UpdateCollectionInput.name UpdateCollectionInput.description
  query.verifyBillingFiles.after query.verifyInferenceFiles.after query.verifyKnowledgeFiles.after
  CreateWebDocumentInput.url CreateWebDocumentInput.metadata AddSiteInput.url AddSiteInput.metadata
  UploadFileInput.name UploadFileInput.contentBase64 CreateDocumentInput.metadata AttachedFileInput.metadata CreateDocumentInput.externalId AttachedFileInput.externalId UpdateDocumentInput.name UpdateDocumentInput.metadata subscription.usageRecorded.after subscription.walletChanged.after
  CreateUploadInput.name CreateUploadInput.metadata AppendToUploadInput.contentBase64
  subscription.agentRunEvents.after subscription.chatCompletionEvents.after subscription.workflowRunEvents.after subscription.documentUpdated.after
  subscription.runEnded.after Agent.versions.after Agent.versions.before Workflow.versions.after Workflow.versions.before ApiKeyFilter.nameContains
`)

/** Valid arguments for each root field with places, with the caller's own things only. */
export const ARGUMENTS: Readonly<Record<string, (own: Possessions) => Json>> = {
  ...Object.fromEntries(
    [
      'agentRuns',
      'workflowRuns',
      'organizations',
      'sessions',
      'verifyLedger',
      'verifyBlobs',
      'ingestionQueues',
      'billingHealth',
      'inferenceHealth',
      'knowledgeHealth',
      'verifyBillingFiles',
      'verifyInferenceFiles',
      'verifyKnowledgeFiles',
      'webhookEndpoints',
      'agents',
      'workflows',
      'collections',
      'files',
      'rebuildIndex',
      'usageRecorded',
      'walletChanged',
    ].map((field) => [field, () => ({})]),
  ),
  ...Object.fromEntries(
    listed({
      organization: 'organization, resumeOrganization, deleteOrganization',
      document: 'node, document, retryDocument, deleteDocument',
      key: 'apiKey, rotateApiKey, revokeApiKey',
      thread: 'thread, deleteThread',
      webhook: 'webhookEndpoint, deleteWebhookEndpoint, rotateWebhookSecret, pingWebhookEndpoint',
      agent: 'agent, deleteAgent',
      agentRun: 'agentRun, cancelAgentRun, deleteAgentRun',
      workflow: 'workflow, deleteWorkflow',
      workflowRun: 'workflowRun, cancelWorkflowRun, deleteWorkflowRun',
      collection: 'collection',
      file: 'file, fileDownload, deleteFile',
      evaluation: 'evaluation, deleteEvaluation',
      reembedding: 'reembedding, cancelReembedding',
      member: 'member',
      erasure: 'erasure',
      invitation: 'revokeInvitation',
      session: 'revokeSession',
      upload: 'upload, cancelUpload',
      webSource: 'webSource, refreshWebSource, deleteWebSource',
      goldQuestion: 'deleteGoldQuestion',
      chatStream: 'chatCompletionEvents',
    }).map(([field, kind]) => [field, (own: Possessions) => ({ id: own[kind] })]),
  ),
  nodes: (own) => ({ ids: [own.document] }),
  usage: () => ({ first: 2 }),
  residencyEffects: () => ({ policy: 'LOCAL_ONLY' }),
  documents: () => ({ status: 'READY' }),
  usageSummary: () => ({ groupBy: ['MODEL'] }),
  webhookDeliveries: (own) => ({ endpointId: own.webhook, first: 2 }),
  model: () => ({ id: 'mock-chat' }),
  quoteChatCompletion: () => ({ request: CHAT }),
  quoteRerank: () => ({ input: { model: 'mock-rerank', query: 'harbour', documents: ['harbour'] } }),
  collectionByCode: (own) => ({ code: own.collectionCode }),
  quoteReembedding: (own) => ({ input: { collectionId: own.collection, embeddingModel: 'mock-embed' } }),
  searchCollection: (own) => ({ input: { collectionId: own.collection, query: 'harbour', mode: 'LEXICAL' } }),
  fileContent: (own) => ({ id: own.file, offset: 0, length: 10 }),
  createApiKey: () => ({ input: { name: 'Made', scopes: ['INFERENCE'] } }),
  updateApiKey: (own) => ({ input: { id: own.key, name: 'Changed' } }),
  erase: () => ({ input: {} }),
  inviteMember: () => ({ input: { email: 'made@example.org', role: 'VIEWER' } }),
  updateMember: (own) => ({ input: { id: own.member, role: 'EDITOR' } }),
  removeMember: (own) => ({ input: { id: own.member } }),
  updateOrganization: () => ({ input: { name: 'Changed' } }),
  createOrganization: () => ({ input: { name: 'Made' } }),
  assignPlan: (own) => ({ input: { organizationId: own.organization, plan: 'self-hosted' } }),
  suspendOrganization: (own) => ({ input: { organizationId: own.organization } }),
  createWebhookEndpoint: (own) => ({ input: { url: own.elsewhere, eventTypes: ['usage.recorded'] } }),
  updateWebhookEndpoint: (own) => ({ input: { id: own.webhook, description: 'Changed' } }),
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
  runAgent: (own) => ({ input: { agentId: own.agent, input: 'Hello' } }),
  createWorkflow: () => ({ input: { code: 'made', name: 'Made', definition: definition({ type: 'template', template: 'x' }) } }),
  updateWorkflow: (own) => ({ input: { id: own.workflow, name: 'Changed' } }),
  runWorkflow: (own) => ({ input: { workflowId: own.workflow, inputs: {}, wait: true } }),
  createCollection: () => ({ input: { code: 'made', name: 'Made', embeddingModel: 'mock-embed' } }),
  updateCollection: (own) => ({ input: { id: own.collection, name: 'Changed' } }),
  deleteCollection: (own) => ({ id: own.collection, detach: true }),
  uploadFile: () => ({ input: { name: 'a.txt', contentBase64: 'YQ==' } }),
  createWebDocument: (own) => ({ input: { collectionId: own.collection, url: own.page } }),
  addSite: (own) => ({ input: { collectionId: own.collection, url: own.page } }),
  createUpload: () => ({ input: { name: 'a.txt', sizeBytes: 1 } }),
  appendToUpload: (own) => ({ input: { id: own.upload, offset: 0, contentBase64: 'YQ==' } }),
  completeUpload: (own) => ({ input: { id: own.upload } }),
  createDocument: (own) => ({ input: { collectionId: own.collection, fileId: own.file } }),
  addGoldQuestions: (own) => ({
    input: { collectionId: own.collection, questions: [{ query: 'harbour', expected: [{ phrase: 'built' }] }] },
  }),
  suggestGoldQuestions: (own) => ({
    input: { collectionId: own.collection, documentIds: [own.document], model: 'mock-chat', count: 1 },
  }),
  startEvaluation: (own) => ({ input: { collectionId: own.collection, settings: [{ mode: 'LEXICAL' }] } }),
  setEvaluationWatch: (own) => ({ input: { collectionId: own.collection, settings: [{ mode: 'LEXICAL' }] } }),
  deleteEvaluationWatch: (own) => ({ collectionId: own.collection }),
  startReembedding: (own) => ({ input: { collectionId: own.collection, embeddingModel: 'mock-embed' } }),
  createDocuments: (own) => ({ input: { collectionId: own.collection, documents: [{ fileId: own.file }] } }),
  updateDocument: (own) => ({ input: { id: own.document, metadata: { topic: 'changed' } } }),
  retryDocuments: (own) => ({ input: { collectionId: own.collection, ids: [own.document] } }),
  deleteDocuments: (own) => ({ input: { collectionId: own.collection, ids: [own.document] } }),
  verifyIndex: (own) => ({ input: { collectionId: own.collection, repair: false } }),
  chatCompletion: () => ({ input: { request: { ...CHAT, stream: true } } }),
  transcription: () => ({ input: { model: 'mock-speech', contentBase64: 'UklGRg==' } }),
  agentRunEvents: (own) => ({ runId: own.agentRun }),
  workflowRunEvents: (own) => ({ runId: own.workflowRun }),
  documentUpdated: () => ({ after: '0' }),
  runEnded: () => ({ after: '0' }),
}
/** Arguments of subscriptions whose names are also the names of queries. */
export const SUBSCRIPTION_ARGUMENTS: typeof ARGUMENTS = {
  agentRun: (own) => ({ input: { agentId: own.agent, input: 'Hello' } }),
  workflowRun: (own) => ({ input: { workflowId: own.workflow, inputs: {} } }),
}

/** The query around a field below the roots, with `FIELD` in its place. */
export const WAYS: Readonly<Record<string, (own: Possessions) => string>> = {
  ...Object.fromEntries(
    listed({
      agent: 'Agent.runs, Agent.threads, Agent.versions',
      document: 'Document.chunks',
      collection: 'Collection.documents, Collection.sources, Collection.goldQuestions, Collection.reembeddings, Collection.evaluations',
      workflow: 'Workflow.runs, Workflow.versions',
    }).map(([field, kind]) => [field, (own: Possessions) => `{ ${kind}(id: "${own[kind]}") { FIELD } }`]),
  ),
  ...Object.fromEntries(
    ['members', 'invitations', 'apiKeys', 'erasures', 'changes', 'usageSummary'].map((field) => [
      `Organization.${field}`,
      () => '{ organization { FIELD } }',
    ]),
  ),
  'Wallet.entries': () => '{ organization { wallet { FIELD } } }',
}

/** The depth of the selection of an inner field with arguments. */
export const INNER_DEPTH = 2
