import { createAnthropic } from '@ai-sdk/anthropic'
import { runAiSdkCases } from './ai-sdk-cases.js'
import { URL } from './cases.js'

await runAiSdkCases((apiKey) => createAnthropic({ baseURL: `${URL}/v1`, apiKey }), null)
