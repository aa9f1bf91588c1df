import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { runAiSdkCases } from './ai-sdk-cases.js'
import { EMBEDDING_MODEL, KEY, URL } from './cases.js'

const open = (apiKey) => createOpenAICompatible({ name: 'kis', baseURL: `${URL}/v1`, apiKey, supportsStructuredOutputs: true })

await runAiSdkCases(open, open(KEY).embeddingModel(EMBEDDING_MODEL))
