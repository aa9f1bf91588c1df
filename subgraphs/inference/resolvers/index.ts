import type { Resolvers } from '../../common/subgraph.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import {
  AgentRunErrorFields,
  AgentRunEventFields,
  AgentRunEventTypeValues,
  AgentRunFields,
  AgentRunStatusValues,
  AgentRunStepFields,
  AgentRunStepKindValues,
  AgentSearchFields,
  agentRunMutations,
  agentRunQueries,
  agentRunSubscriptions,
  CitationFields,
} from './agent-runs.ts'
import { AgentFields, agentMutations, agentQueries, SortOrderValues } from './agents.ts'
import {
  ChatChoiceFields,
  ChatCompletionEventFields,
  ChatCompletionFields,
  ChatCompletionQuoteFields,
  chatMutations,
  chatQueries,
  chatSubscriptions,
  FinishReasonValues,
  QuotedModelFields,
} from './chat.ts'
import { CollectionFields } from './collections.ts'
import { EmbeddingFields, EmbeddingsFields, EncodingFormatValues, embeddingMutations } from './embeddings.ts'
import { ModelFields, ModelKindValues, modelQueries, PriceFields, ResidencyValues } from './models.ts'
import {
  ChunkingStrategyValues,
  TimestampGranularityValues,
  TranscriptionEventFields,
  TranscriptionFactValues,
  TranscriptionFields,
  TranscriptionFormatValues,
  transcriptionMutations,
  transcriptionSubscriptions,
} from './transcriptions.ts'

export const resolvers: Resolvers<ServedDeps> = {
  Query: { ...modelQueries, ...chatQueries, ...agentQueries, ...agentRunQueries },
  Mutation: { ...chatMutations, ...embeddingMutations, ...transcriptionMutations, ...agentMutations, ...agentRunMutations },
  Subscription: { ...chatSubscriptions, ...transcriptionSubscriptions, ...agentRunSubscriptions },
  Agent: AgentFields,
  AgentRun: AgentRunFields,
  AgentRunError: AgentRunErrorFields,
  AgentRunEvent: AgentRunEventFields,
  AgentRunEventType: AgentRunEventTypeValues,
  AgentRunStatus: AgentRunStatusValues,
  AgentRunStep: AgentRunStepFields,
  AgentRunStepKind: AgentRunStepKindValues,
  AgentSearch: AgentSearchFields,
  ChatChoice: ChatChoiceFields,
  ChatCompletion: ChatCompletionFields,
  ChatCompletionQuote: ChatCompletionQuoteFields,
  ChatCompletionEvent: ChatCompletionEventFields,
  ChunkingStrategy: ChunkingStrategyValues,
  Citation: CitationFields,
  Collection: CollectionFields,
  Embedding: EmbeddingFields,
  Embeddings: EmbeddingsFields,
  EncodingFormat: EncodingFormatValues,
  FinishReason: FinishReasonValues,
  Model: ModelFields,
  ModelKind: ModelKindValues,
  Price: PriceFields,
  QuotedModel: QuotedModelFields,
  Residency: ResidencyValues,
  SortOrder: SortOrderValues,
  TimestampGranularity: TimestampGranularityValues,
  Transcription: TranscriptionFields,
  TranscriptionEvent: TranscriptionEventFields,
  TranscriptionFact: TranscriptionFactValues,
  TranscriptionFormat: TranscriptionFormatValues,
}
