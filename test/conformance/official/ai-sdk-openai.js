import { createOpenAI } from '@ai-sdk/openai'
import { runAiSdkCases } from './ai-sdk-cases.js'
import { EMBEDDING_MODEL, KEY, URL } from './cases.js'

const open = (apiKey) => createOpenAI({ baseURL: `${URL}/v1`, apiKey })

await runAiSdkCases(open, open(KEY).embedding(EMBEDDING_MODEL))
