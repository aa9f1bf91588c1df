import { expect, it } from 'vitest'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { type AiSdkEngineOptions, openAiSdkEngines } from '../../subgraphs/inference/adapters/ai-sdk/engines.ts'
import { VENDORS } from '../../subgraphs/inference/adapters/ai-sdk/vendors.ts'
import { azureAddresses } from '../../subgraphs/inference/adapters/openai/azure.ts'
import { createOpenAiEngines } from '../../subgraphs/inference/adapters/openai/engines.ts'
import type { VendorCloud } from '../support/engines/vendor-cloud.ts'
import { ANTHROPIC_WIRE, BEDROCK_WIRE, COHERE_WIRE, GOOGLE_WIRE, MISTRAL_WIRE, OPENAI_WIRE } from '../support/engines/vendor-wires.ts'
import { type ChatEngineCase, chatEngineSuite, RICH_REQUEST } from './chat-engine.ts'

const KEY = 'secret-of-the-operator'
const CALLS = ['call_from_elsewhere_a', 'call_from_elsewhere_b'] as const
const IMAGE_BASE64 = 'iVBORw0KGgo='
const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const NOTHING = { type: 'object', properties: {} }

/** An engine of the AI SDK on the cloud, whose paths begin with `path`. */
const sdk = (kind: AiSdkEngineOptions['kind'], path: string) => (cloud: VendorCloud) =>
  openAiSdkEngines({
    ...{ kind, name: 'vendor', baseUrl: `${cloud.url}${path}`, clock: systemClock, sessionToken: null },
    ...(kind === 'bedrock'
      ? { apiKey: null, region: 'eu-central-1', accessKeyId: 'AKIAEXAMPLEEXAMPLE00', secretAccessKey: KEY }
      : { apiKey: KEY, region: null, accessKeyId: null, secretAccessKey: null }),
  })

const openAiLike = {
  wire: OPENAI_WIRE,
  dropped: [],
  schemaBody: { response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: WEATHER } } },
  requiredToolBody: { tool_choice: 'required' },
  callIds: ['call_1', 'call_2'],
  filtered: 'content_filter',
  reportsCached: true,
  reportsReasoning: true,
  namesModel: true,
  namesResponse: true,
  // The adapter's own tests have it: what passes whole would only show the mock's own shortcomings here.
  mock: { plain: false, streamed: false, tools: false },
} as const

const CASES: readonly ChatEngineCase[] = [
  {
    ...openAiLike,
    name: 'openai',
    engineModel: 'gpt-4o-mini',
    open: async (cloud) => createOpenAiEngines({ name: 'vendor', baseUrl: `${cloud.url}/v1`, apiKey: KEY, clock: systemClock }),
    rich: {
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
      body: { ...RICH_REQUEST, model: 'gpt-4o-mini' },
    },
  },
  {
    ...openAiLike,
    name: 'azure, v1',
    engineModel: 'our-deployment',
    async open(cloud) {
      const azure = azureAddresses(cloud.url, null)
      return createOpenAiEngines({ name: 'vendor', baseUrl: azure.baseUrl, azure, apiKey: KEY, clock: systemClock })
    },
    rich: { path: '/openai/v1/chat/completions', headers: { 'api-key': KEY }, body: { ...RICH_REQUEST, model: 'our-deployment' } },
  },
  {
    ...openAiLike,
    name: 'azure, by deployment',
    engineModel: 'our-deployment',
    async open(cloud) {
      const azure = azureAddresses(cloud.url, '2024-10-21')
      return createOpenAiEngines({ name: 'vendor', baseUrl: azure.baseUrl, azure, apiKey: KEY, clock: systemClock })
    },
    rich: {
      path: '/openai/deployments/our-deployment/chat/completions?api-version=2024-10-21',
      headers: { 'api-key': KEY },
      body: { ...RICH_REQUEST, model: 'our-deployment' },
    },
  },
  {
    name: 'anthropic',
    engineModel: 'claude-sonnet-4-6',
    wire: ANTHROPIC_WIRE,
    open: sdk('anthropic', '/v1'),
    rich: {
      path: '/v1/messages',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
      body: {
        model: 'claude-sonnet-4-6',
        max_tokens: 500,
        temperature: 0.4,
        stop_sequences: ['END', 'STOP'],
        system: [{ type: 'text', text: 'Be brief.' }],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'ما هذا؟' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: IMAGE_BASE64 } },
            ],
          },
          {
            role: 'assistant',
            content: [
              { type: 'tool_use', id: CALLS[0], name: 'weather', input: { city: 'الرياض' } },
              { type: 'tool_use', id: CALLS[1], name: 'clock', input: {} },
            ],
          },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: CALLS[0], content: '31 °C' },
              { type: 'tool_result', tool_use_id: CALLS[1], content: 'noon' },
              { type: 'text', text: 'Now answer.' },
            ],
          },
        ],
        tools: [
          { name: 'weather', description: 'Weather of a city', input_schema: WEATHER },
          { name: 'clock', description: 'Time of day', input_schema: NOTHING },
        ],
        tool_choice: { type: 'auto' },
      },
    },
    dropped: ['frequency_penalty', 'presence_penalty', 'seed', 'logit_bias'],
    schemaBody: { max_tokens: 4_000, output_config: { format: { type: 'json_schema', schema: WEATHER } } },
    requiredToolBody: { tool_choice: { type: 'any' } },
    callIds: ['toolu_01', 'toolu_02'],
    filtered: 'content_filter',
    reportsCached: true,
    reportsReasoning: true,
    namesModel: true,
    namesResponse: true,
    mock: { plain: true, streamed: true, tools: true },
  },
  {
    name: 'google',
    engineModel: 'gemini-2.5-pro',
    wire: GOOGLE_WIRE,
    open: sdk('google', '/v1beta'),
    rich: {
      path: '/v1beta/models/gemini-2.5-pro:generateContent',
      headers: { 'x-goog-api-key': KEY },
      body: {
        generationConfig: {
          maxOutputTokens: 500,
          temperature: 0.4,
          stopSequences: ['END', 'STOP'],
          seed: 7,
          mediaResolution: 'MEDIA_RESOLUTION_LOW',
        },
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        contents: [
          { role: 'user', parts: [{ text: 'ما هذا؟' }, { inlineData: { mimeType: 'image/png', data: IMAGE_BASE64 } }] },
          {
            role: 'model',
            parts: [
              { functionCall: { id: CALLS[0], name: 'weather', args: { city: 'الرياض' } } },
              { functionCall: { id: CALLS[1], name: 'clock', args: {} } },
            ],
          },
          {
            role: 'user',
            parts: [
              { functionResponse: { id: CALLS[0], name: 'weather', response: { name: 'weather', content: '31 °C' } } },
              { functionResponse: { id: CALLS[1], name: 'clock', response: { name: 'clock', content: 'noon' } } },
            ],
          },
          { role: 'user', parts: [{ text: 'Now answer.' }] },
        ],
        tools: [
          {
            functionDeclarations: [
              { name: 'weather', description: 'Weather of a city', parametersJsonSchema: WEATHER },
              { name: 'clock', description: 'Time of day', parametersJsonSchema: NOTHING },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      },
    },
    // Gemini 2.5 has no penalties; other models of the vendor do.
    dropped: ['frequency_penalty', 'presence_penalty', 'logit_bias'],
    schemaBody: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: WEATHER } },
    requiredToolBody: { toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
    callIds: ['fc_1', 'fc_2'],
    filtered: 'content_filter',
    reportsCached: true,
    reportsReasoning: true,
    namesModel: false,
    namesResponse: true,
    mock: { plain: true, streamed: true, tools: true },
  },
  {
    name: 'bedrock',
    engineModel: 'eu.anthropic.claude-sonnet-4-6',
    wire: BEDROCK_WIRE,
    open: sdk('bedrock', ''),
    rich: {
      path: '/model/eu.anthropic.claude-sonnet-4-6/converse',
      headers: {
        authorization: expect.stringMatching(
          /^AWS4-HMAC-SHA256 Credential=AKIAEXAMPLEEXAMPLE00\/\d{8}\/eu-central-1\/bedrock\/aws4_request, /,
        ),
      },
      body: {
        system: [{ text: 'Be brief.' }],
        messages: [
          { role: 'user', content: [{ text: 'ما هذا؟' }, { image: { format: 'png', source: { bytes: IMAGE_BASE64 } } }] },
          {
            role: 'assistant',
            content: [
              { toolUse: { toolUseId: CALLS[0], name: 'weather', input: { city: 'الرياض' } } },
              { toolUse: { toolUseId: CALLS[1], name: 'clock', input: {} } },
            ],
          },
          {
            role: 'user',
            content: [
              { toolResult: { toolUseId: CALLS[0], content: [{ text: '31 °C' }] } },
              { toolResult: { toolUseId: CALLS[1], content: [{ text: 'noon' }] } },
              { text: 'Now answer.' },
            ],
          },
        ],
        inferenceConfig: { maxTokens: 500, temperature: 0.4, stopSequences: ['END', 'STOP'] },
        additionalModelResponseFieldPaths: ['/delta/stop_sequence'],
        toolConfig: {
          tools: [
            { toolSpec: { name: 'weather', description: 'Weather of a city', inputSchema: { json: WEATHER } } },
            { toolSpec: { name: 'clock', description: 'Time of day', inputSchema: { json: NOTHING } } },
          ],
          toolChoice: { auto: {} },
        },
      },
    },
    dropped: ['frequency_penalty', 'presence_penalty', 'seed', 'logit_bias'],
    // By a tool that must be called; what it is called with is the text of the answer.
    schemaBody: { toolConfig: { tools: [{ toolSpec: { name: 'json', inputSchema: { json: WEATHER } } }], toolChoice: { any: {} } } },
    requiredToolBody: { toolConfig: { toolChoice: { any: {} } } },
    callIds: ['tooluse_1', 'tooluse_2'],
    filtered: 'content_filter',
    reportsCached: true,
    reportsReasoning: false,
    namesModel: false,
    namesResponse: false,
    mock: { plain: true, streamed: true, tools: true },
  },
  {
    name: 'mistral',
    engineModel: 'mistral-large-latest',
    wire: MISTRAL_WIRE,
    open: sdk('mistral', '/v1'),
    rich: {
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${KEY}` },
      body: {
        model: 'mistral-large-latest',
        max_tokens: 500,
        temperature: 0.4,
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        random_seed: 7,
        stop: ['END', 'STOP'],
        messages: [
          { role: 'system', content: 'Be brief.' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'ما هذا؟' },
              { type: 'image_url', image_url: `data:image/png;base64,${IMAGE_BASE64}` },
            ],
          },
          {
            role: 'assistant',
            content: '',
            tool_calls: [
              { id: '97c1ff525', type: 'function', function: { name: 'weather', arguments: '{"city":"الرياض"}' } },
              { id: 'ff8cae4fc', type: 'function', function: { name: 'clock', arguments: '{}' } },
            ],
          },
          { role: 'tool', name: 'weather', tool_call_id: '97c1ff525', content: '31 °C' },
          { role: 'tool', name: 'clock', tool_call_id: 'ff8cae4fc', content: 'noon' },
          { role: 'user', content: [{ type: 'text', text: 'Now answer.' }] },
        ],
        tools: [
          { type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters: WEATHER } },
          { type: 'function', function: { name: 'clock', description: 'Time of day', parameters: NOTHING } },
        ],
        tool_choice: 'auto',
      },
    },
    dropped: ['logit_bias'],
    schemaBody: { response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: WEATHER } } },
    requiredToolBody: { tool_choice: 'any' },
    callIds: ['abcdefgh1', 'abcdefgh2'],
    filtered: 'error',
    reportsCached: true,
    reportsReasoning: false,
    namesModel: true,
    namesResponse: true,
    mock: { plain: true, streamed: true, tools: true },
  },
  {
    name: 'cohere',
    engineModel: 'command-a-03-2025',
    wire: COHERE_WIRE,
    open: sdk('cohere', '/v2'),
    rich: {
      path: '/v2/chat',
      headers: { authorization: `Bearer ${KEY}` },
      body: {
        model: 'command-a-03-2025',
        max_tokens: 500,
        temperature: 0.4,
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        seed: 7,
        stop_sequences: ['END', 'STOP'],
        messages: [
          { role: 'system', content: 'Be brief.' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'ما هذا؟' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${IMAGE_BASE64}`, detail: 'low' } },
            ],
          },
          {
            role: 'assistant',
            tool_calls: [
              { id: CALLS[0], type: 'function', function: { name: 'weather', arguments: '{"city":"الرياض"}' } },
              { id: CALLS[1], type: 'function', function: { name: 'clock', arguments: '{}' } },
            ],
          },
          { role: 'tool', tool_call_id: CALLS[0], content: '31 °C' },
          { role: 'tool', tool_call_id: CALLS[1], content: 'noon' },
          { role: 'user', content: 'Now answer.' },
        ],
        tools: [
          { type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters: WEATHER } },
          { type: 'function', function: { name: 'clock', description: 'Time of day', parameters: NOTHING } },
        ],
      },
    },
    dropped: ['logit_bias'],
    schemaBody: { response_format: { type: 'json_object', json_schema: WEATHER } },
    requiredToolBody: { tool_choice: 'REQUIRED' },
    callIds: ['weather_1', 'clock_2'],
    filtered: 'error',
    reportsCached: true,
    reportsReasoning: false,
    namesModel: false,
    namesResponse: true,
    // Its `content-start` has no text, which Cohere's has.
    mock: { plain: true, streamed: false, tools: true },
  },
]

for (const engineCase of CASES) chatEngineSuite(engineCase)

it('has a case of every vendor', () => {
  const names = CASES.map(({ name }) => name)
  expect(Object.keys(VENDORS).filter((kind) => !names.includes(kind))).toEqual([])
})
