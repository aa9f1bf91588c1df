import type { z } from 'zod'
import { flag, mapping, oneOf, optional, reading, text, whole } from '../../../common/catalog/fields.ts'

type Badge = 'local' | 'regional' | 'cloud'

const ENGINE_KINDS = ['openai', 'azure', 'anthropic', 'google', 'bedrock', 'mistral', 'cohere', 'rerank', 'embedded'] as const
export type EngineKind = (typeof ENGINE_KINDS)[number]

/** How a server of rerankers is asked: as Cohere's v2 API, as Jina's, or as text-embeddings-inference. */
export const RERANK_PROTOCOLS = ['cohere', 'jina', 'tei'] as const
export type RerankProtocol = (typeof RERANK_PROTOCOLS)[number]

/** One engine of the file. A setting that turns out empty is null. */
export interface EngineEntry {
  readonly name: string
  readonly kind: EngineKind
  readonly badge: Badge
  /** Null: the vendor's own address. */
  readonly baseUrl: string | null
  readonly apiKey: string | null
  /** For `bedrock`: the AWS region, and the keys that sign requests if there is no `apiKey`. */
  readonly region: string | null
  readonly accessKeyId: string | null
  readonly secretAccessKey: string | null
  readonly sessionToken: string | null
  /**
   * For `azure`: the name before `.openai.azure.com`, and the dated API version, whose addresses name the deployment.
   * Null: the v1 API.
   */
  readonly resource: string | null
  readonly apiVersion: string | null
  /** For `rerank`. */
  readonly protocol: RerankProtocol | null
  /** Most texts of one call for embeddings or scores, if the server takes fewer than its protocol's usual number. */
  readonly maxBatch: number | null
  /**
   * Whether the engine may fetch images by their addresses. With an engine that is not `cloud`, a caller's address
   * could lead to internal hosts: the service then fetches the images, unless the entry of an `openai` engine says
   * otherwise.
   */
  readonly fetchesImages: boolean
  /**
   * Longest waits in milliseconds: for a connection, for the first piece of a streamed answer, between two pieces.
   * Null: the engine's default.
   */
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly idleMs: number | null
  /** Required settings that turned out empty. They turn the engine off. */
  readonly missing: readonly string[]
  readonly on: boolean
}

/**
 * What each kind requires: one setting of each inner list; `+` joins settings that belong together. An engine is
 * refused if the file names none of them, and off if all that it names are empty.
 */
const NEEDS: Readonly<Record<EngineKind, readonly (readonly string[])[]>> = {
  openai: [['base_url']],
  azure: [['base_url', 'resource'], ['api_key']],
  anthropic: [['api_key']],
  google: [['api_key']],
  bedrock: [['region'], ['api_key', 'access_key_id+secret_access_key']],
  mistral: [['api_key']],
  cohere: [['api_key']],
  rerank: [['base_url'], ['protocol']],
  embedded: [],
}
/** Kinds whose servers may need no key. */
const KEYLESS: readonly EngineKind[] = ['openai', 'rerank']
/** Settings for these kinds only. Every kind takes the others. */
const KIND_OF_SETTING = {
  region: 'bedrock',
  access_key_id: 'bedrock',
  secret_access_key: 'bedrock',
  session_token: 'bedrock',
  resource: 'azure',
  api_version: 'azure',
  fetches_images: 'openai',
  protocol: 'rerank',
} as const satisfies Readonly<Record<string, EngineKind>>
/** No call takes longer. */
const MAX_WAIT_SECONDS = 900
const REGION = /^[a-z0-9-]{1,40}$/
const RESOURCE = /^[A-Za-z0-9-]{1,64}$/

const SETTING = optional(text())
const WAIT = optional(whole(1, MAX_WAIT_SECONDS))

export const ENGINE = mapping({
  kind: oneOf(ENGINE_KINDS),
  badge: oneOf(['local', 'regional', 'cloud']),
  base_url: optional(
    text().refine((url) => url === '' || /^https?:$/.test(URL.parse(url)?.protocol ?? ''), 'is not an http or https address'),
  ),
  api_key: SETTING,
  region: optional(text().refine((name) => name === '' || REGION.test(name), 'is not the name of a region, such as eu-central-1')),
  access_key_id: SETTING,
  secret_access_key: SETTING,
  session_token: SETTING,
  resource: optional(text().refine((name) => name === '' || RESOURCE.test(name), 'is not the name of a resource')),
  api_version: SETTING,
  max_batch: optional(whole(1, 2_048)),
  fetches_images: optional(flag()),
  protocol: optional(oneOf(RERANK_PROTOCOLS)),
  connect_seconds: WAIT,
  first_byte_seconds: WAIT,
  idle_seconds: WAIT,
}).superRefine((engine, context) => {
  for (const [setting, kind] of Object.entries(KIND_OF_SETTING))
    if (engine.kind !== kind && isProvided(engine, setting))
      context.addIssue({ code: 'custom', path: [setting], message: 'is not a field that the catalog knows' })
  for (const choices of NEEDS[engine.kind])
    if (listProvided(engine, choices).length === 0)
      context.addIssue({
        code: 'custom',
        path: [choices[0]!],
        message: choices.length > 1 ? `is missing, and so is \`${choices[1]}\`` : 'is missing',
      })
}, reading('kind'))

type EngineFields = z.output<typeof ENGINE>

export function toEngineEntry(name: string, fields: EngineFields): EngineEntry {
  const missing = findMissing(fields)
  return {
    name,
    kind: fields.kind,
    badge: fields.badge,
    baseUrl: fields.base_url || null,
    apiKey: fields.api_key || null,
    region: fields.region || null,
    accessKeyId: fields.access_key_id || null,
    secretAccessKey: fields.secret_access_key || null,
    sessionToken: fields.session_token || null,
    resource: fields.resource || null,
    apiVersion: fields.api_version || null,
    protocol: fields.protocol,
    maxBatch: fields.max_batch,
    fetchesImages: fields.fetches_images ?? fields.badge === 'cloud',
    connectMs: toMilliseconds(fields.connect_seconds),
    firstByteMs: toMilliseconds(fields.first_byte_seconds),
    idleMs: toMilliseconds(fields.idle_seconds),
    missing,
    on: missing.length === 0,
  }
}

function findMissing(fields: EngineFields): readonly string[] {
  const missing = NEEDS[fields.kind].flatMap((choices) => {
    const provided = listProvided(fields, choices)
    return provided.some((choice) => choice.split('+').every((setting) => readSetting(fields, setting))) ? [] : provided.join(' or ')
  })
  // A server of one's own may need no key. But if the file asks for a key and gets none, the engine is off.
  return KEYLESS.includes(fields.kind) && fields.api_key === '' ? [...missing, 'api_key'] : missing
}

/** Those that the file names, even if they turned out empty. */
function listProvided(fields: EngineFields, choices: readonly string[]): readonly string[] {
  return choices.filter((choice) => choice.split('+').some((setting) => isProvided(fields, setting)))
}

function isProvided(fields: EngineFields, setting: string): boolean {
  return (readSetting(fields, setting) ?? null) !== null
}

function readSetting(fields: EngineFields, setting: string): unknown {
  return fields[setting as keyof EngineFields]
}

function toMilliseconds(seconds: number | null): number | null {
  return seconds && seconds * 1_000
}
