import type { Resolvers } from '../../common/subgraph.ts'
import type { Deps } from '../use-cases/deps.ts'
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
import { EmbeddingFields, EmbeddingsFields, EncodingFormatValues, embeddingMutations } from './embeddings.ts'
import { ModelFields, ModelKindValues, modelQueries, PriceFields, ResidencyValues } from './models.ts'
import {
  TimestampGranularityValues,
  TranscriptionFactValues,
  TranscriptionFields,
  TranscriptionFormatValues,
  transcriptionMutations,
} from './transcriptions.ts'

export const resolvers: Resolvers<Deps> = {
  Query: { ...modelQueries, ...chatQueries },
  Mutation: { ...chatMutations, ...embeddingMutations, ...transcriptionMutations },
  Subscription: chatSubscriptions,
  ChatChoice: ChatChoiceFields,
  ChatCompletion: ChatCompletionFields,
  ChatCompletionQuote: ChatCompletionQuoteFields,
  ChatCompletionEvent: ChatCompletionEventFields,
  Embedding: EmbeddingFields,
  Embeddings: EmbeddingsFields,
  EncodingFormat: EncodingFormatValues,
  FinishReason: FinishReasonValues,
  Model: ModelFields,
  ModelKind: ModelKindValues,
  Price: PriceFields,
  QuotedModel: QuotedModelFields,
  Residency: ResidencyValues,
  TimestampGranularity: TimestampGranularityValues,
  Transcription: TranscriptionFields,
  TranscriptionFact: TranscriptionFactValues,
  TranscriptionFormat: TranscriptionFormatValues,
}
