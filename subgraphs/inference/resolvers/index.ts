import { verifyFiles } from '../../common/documents/verify-files.ts'
import { partHealth } from '../../common/server/health.ts'
import {
  AgentRunErrorFields,
  AgentRunEventFields,
  AgentRunFields,
  AgentRunStepFields,
  AgentSearchFields,
  agentRunMutations,
  agentRunQueries,
  agentRunSubscriptions,
  CitationFields,
} from './agent-runs.ts'
import { AgentFields, AgentVersionFields, agentMutations, agentQueries } from './agents.ts'
import {
  ChatChoiceFields,
  ChatCompletionEventFields,
  ChatCompletionFields,
  ChatCompletionQuoteFields,
  chatMutations,
  chatQueries,
  chatSubscriptions,
  QuotedModelFields,
} from './chat.ts'
import { CollectionFields } from './collections.ts'
import { EmbeddingFields, EmbeddingsFields, embeddingMutations } from './embeddings.ts'
import type { Resolvers } from './generated.ts'
import { ModelFields, modelQueries, PriceFields } from './models.ts'
import { nodeQueries } from './nodes.ts'
import { rateLimitMutations, rateLimitQueries } from './rate-limits.ts'
import { QuotedRerankerFields, RerankingFields, RerankQuoteFields, rerankMutations, rerankQueries } from './rerank.ts'
import { RunEndedFields, runEndedSubscriptions } from './run-ends.ts'
import { ThreadFields, threadQueries } from './threads.ts'
import {
  TranscriptionEventFields,
  TranscriptionFields,
  transcriptionMutations,
  transcriptionQueries,
  transcriptionSubscriptions,
} from './transcriptions.ts'
import {
  WorkflowNodeRunFields,
  WorkflowRunErrorFields,
  WorkflowRunEventFields,
  WorkflowRunFields,
  workflowRunMutations,
  workflowRunQueries,
  workflowRunSubscriptions,
} from './workflow-runs.ts'
import { WorkflowFields, WorkflowVersionFields, workflowMutations, workflowQueries } from './workflows.ts'

export const resolvers: Resolvers = {
  Query: {
    ...nodeQueries,
    ...modelQueries,
    ...rateLimitQueries,
    ...rerankQueries,
    ...transcriptionQueries,
    ...chatQueries,
    ...agentQueries,
    ...agentRunQueries,
    ...threadQueries,
    ...workflowQueries,
    ...workflowRunQueries,
    verifyInferenceFiles: (_parent, { after }, { deps, caller }) => verifyFiles(deps.files, caller, after ?? null),
    inferenceHealth: (_parent, _args, { problems, caller }) => partHealth(problems, caller),
  },
  Mutation: {
    ...chatMutations,
    ...rateLimitMutations,
    ...embeddingMutations,
    ...rerankMutations,
    ...transcriptionMutations,
    ...agentMutations,
    ...agentRunMutations,
    ...workflowMutations,
    ...workflowRunMutations,
  },
  Subscription: {
    ...chatSubscriptions,
    ...transcriptionSubscriptions,
    ...agentRunSubscriptions,
    ...workflowRunSubscriptions,
    ...runEndedSubscriptions,
  },
  Agent: AgentFields,
  AgentRun: AgentRunFields,
  AgentRunError: AgentRunErrorFields,
  AgentRunEvent: AgentRunEventFields,
  AgentRunStep: AgentRunStepFields,
  AgentSearch: AgentSearchFields,
  AgentVersion: AgentVersionFields,
  ChatChoice: ChatChoiceFields,
  ChatCompletion: ChatCompletionFields,
  ChatCompletionQuote: ChatCompletionQuoteFields,
  ChatCompletionEvent: ChatCompletionEventFields,
  Citation: CitationFields,
  Collection: CollectionFields,
  Embedding: EmbeddingFields,
  Embeddings: EmbeddingsFields,
  Model: ModelFields,
  Price: PriceFields,
  Reranking: RerankingFields,
  RerankQuote: RerankQuoteFields,
  QuotedModel: QuotedModelFields,
  QuotedReranker: QuotedRerankerFields,
  RunEnded: RunEndedFields,
  Thread: ThreadFields,
  Transcription: TranscriptionFields,
  TranscriptionEvent: TranscriptionEventFields,
  Workflow: WorkflowFields,
  WorkflowNodeRun: WorkflowNodeRunFields,
  WorkflowRun: WorkflowRunFields,
  WorkflowRunError: WorkflowRunErrorFields,
  WorkflowRunEvent: WorkflowRunEventFields,
  WorkflowVersion: WorkflowVersionFields,
}
