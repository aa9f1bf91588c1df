import {
  ANTHROPIC_WIRE,
  BEDROCK_WIRE,
  COHERE_WIRE,
  GOOGLE_WIRE,
  MISTRAL_WIRE,
  OPENAI_WIRE,
  type Wire,
} from '../support/engines/vendor-wires.ts'

export interface ConformanceVendor {
  readonly name: string
  /** How it speaks, for what the mock cannot say of it. */
  readonly wire: Wire
  /** What of the vendor's wire aimock does not have, or has wrong. */
  readonly mockLacks: readonly ('stream' | 'tools')[]
}

export const CONFORMANCE_VENDORS: readonly ConformanceVendor[] = [
  { name: 'openai', wire: OPENAI_WIRE, mockLacks: [] },
  { name: 'anthropic', wire: ANTHROPIC_WIRE, mockLacks: [] },
  { name: 'google', wire: GOOGLE_WIRE, mockLacks: [] },
  { name: 'bedrock', wire: BEDROCK_WIRE, mockLacks: [] },
  { name: 'azure', wire: OPENAI_WIRE, mockLacks: [] },
  { name: 'mistral', wire: MISTRAL_WIRE, mockLacks: [] },
  // Its events of a stream lack the kind of their content.
  { name: 'cohere', wire: COHERE_WIRE, mockLacks: ['stream'] },
]

/** Where the mock has the vendor's API; Azure's and Bedrock's adapters know their own. */
const PATHS: Readonly<Record<string, string>> = { openai: '/v1', anthropic: '/v1', google: '/v1beta', mistral: '/v1', cohere: '/v2' }

const createSettings = (name: string, url: string) => {
  if (name === 'bedrock')
    return `region: eu-west-1, access_key_id: AKIA0, secret_access_key: the-secret-of-the-operator, base_url: "${url}"`
  return `api_key: "key-of-${name}", base_url: "${url}${PATHS[name] ?? ''}"`
}

/** Every vendor's cloud is at `url`; a chat model of each, at 1, 0.1 and 10 USD per million tokens. */
export function catalogOfVendors(url: string): string {
  return `
engines:
${CONFORMANCE_VENDORS.map(({ name }) => `  ${name}: { kind: ${name}, ${createSettings(name, url)}, badge: cloud }`).join('\n')}
models:
${CONFORMANCE_VENDORS.map(
  ({ name }) => `  - id: ${name}-chat
    engine: ${name}
    engine_model: ${name === 'anthropic' ? 'claude-sonnet-4-6' : 'a-model'}
    kind: chat
    supports: [vision, tools, response_schema]
    context_window: 100000
    max_output_tokens: 1000
    price: { input: "1", cached_input: "0.1", output: "10" }`,
).join('\n')}
  - { id: cohere-embed, engine: cohere, kind: embedding, dimensions: 4, context_window: 500, price: { input: "1" } }
`
}

/** In nano-USD. */
export function computePrice({
  prompt,
  cached,
  completion,
}: {
  readonly prompt: number
  readonly cached: number
  readonly completion: number
}): bigint {
  return BigInt(prompt - cached) * 1_000n + BigInt(cached) * 100n + BigInt(completion) * 10_000n
}
