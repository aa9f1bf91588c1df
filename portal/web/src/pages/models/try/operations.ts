import { graphql } from '../../../data/graphql.ts'

export const MODEL = graphql(`
  query TryModel($id: ID!) {
    model(id: $id) {
      id
      kind
      vendor
      residency
      supportsVision
    }
  }
`)

export const CHAT = graphql(`
  subscription TryChat($input: ChatCompletionInput!) {
    chatCompletion(input: $input) {
      id
      cursor
      textDelta
      finishReason
      warnings
      usage {
        promptTokens
        completionTokens
      }
      cost
    }
  }
`)

export const EMBED = graphql(`
  mutation TryEmbeddings($input: EmbeddingsInput!) {
    createEmbeddings(input: $input) {
      promptTokens
      cost
      data {
        index
        float
      }
    }
  }
`)

export const RERANK = graphql(`
  mutation TryRerank($input: RerankInput!) {
    createRerank(input: $input) {
      cost
      tokens
      searchUnits
      results {
        index
        score
      }
    }
  }
`)

export const TRANSCRIBE = graphql(`
  mutation TryTranscription($input: TranscriptionInput!) {
    createTranscription(input: $input) {
      text
      audioSeconds
      cost
    }
  }
`)
