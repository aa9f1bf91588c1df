import { createHash } from 'node:crypto'
import { GraphQLError } from 'graphql'
import { KisError } from '../subgraphs/common/errors.ts'
import { hasScope, type Principal } from '../subgraphs/common/identity/principal.ts'
import { WeighedCache } from '../subgraphs/common/link/weighed-cache.ts'

/**
 * Bytes of the texts that clients have sent with their hash: one for each character, and `ENTRY_BYTES` for each text.
 */
const MAX_SENT_BYTES = 16 * 1024 * 1024
const ENTRY_BYTES = 512
/** Characters of one text. A longer text contains data. */
const MAX_TEXT_CHARACTERS = 16_384

/** Operations of the operator's own frontends, by the IDs that clients send. */
export type Manifest = ReadonlyMap<string, string>

/** The fields that clients may send instead of an operation's text. */
export interface OperationReference {
  readonly query?: string | null | undefined
  readonly documentId?: unknown
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined
}

/**
 * Operation texts that clients call by an ID: the trusted documents of the operator's manifest, and texts that clients
 * sent before with their SHA-256 (automatic persisted queries, Apollo's protocol). Each process knows only the texts
 * that were sent to it; a client that reaches another process sends the text again. Texts are stored per organization,
 * because they show which questions it asks.
 */
export class PersistedOperations {
  readonly #manifest: Manifest
  readonly #trustedOnly: boolean
  readonly #trustedHashes: ReadonlySet<string>
  readonly #sent = new WeighedCache<string>(MAX_SENT_BYTES)

  /** `trustedOnly`: only operators and services may run texts that are not in the manifest. */
  constructor(manifest: Manifest, trustedOnly: boolean) {
    this.#manifest = manifest
    this.#trustedOnly = trustedOnly
    this.#trustedHashes = new Set([...manifest.values()].map(sha256))
  }

  get manifest(): Manifest {
    return this.#manifest
  }

  /**
   * Returns the operation's text.
   * @throws {GraphQLError} the ID is unknown to the caller's organization, or belongs to another text
   */
  findText({ query, documentId, extensions }: OperationReference, { organizationId }: Pick<Principal, 'organizationId'>): string {
    const id = readId(documentId, extensions)
    if (id === undefined) return query ?? ''
    if (!query) {
      const text = this.#manifest.get(id) ?? this.#sent.get(`${organizationId} ${id}`)
      if (text === undefined) throw notFound()
      return text
    }
    if (sha256(query) !== id)
      throw new KisError('invalid_request', 'The SHA-256 does not match the text. Send the hash of the text that you send.')
    if (query.length <= MAX_TEXT_CHARACTERS && !this.#trustedOnly)
      this.#sent.set(`${organizationId} ${id}`, query, ENTRY_BYTES + query.length, organizationId)
    return query
  }

  /**
   * @throws {KisError} `permission_denied`: callers without the scope `operator` may not run the text with this SHA-256
   */
  requireOpen(hash: string, caller: Principal): void {
    if (!this.#trustedOnly || this.#trustedHashes.has(hash) || hasScope(caller, 'operator')) return
    throw new KisError('permission_denied', 'This service only runs the operations of its manifest. Send the id of one of them.')
  }
}

/** Removes the name of the hash, with which graphql-codegen prefixes its IDs. */
const withoutPrefix = (id: string) => id.replace(/^sha256:/, '')

/**
 * Reads the `documentId` of the GraphQL over HTTP draft, or the hash of Apollo's extension; each with or without
 * `sha256:`.
 */
function readId(documentId: unknown, extensions: OperationReference['extensions']): string | undefined {
  if (typeof documentId === 'string') return withoutPrefix(documentId)
  const persisted = extensions?.persistedQuery as { readonly version?: unknown; readonly sha256Hash?: unknown } | null | undefined
  if (!persisted) return undefined
  if (persisted.version !== 1 || typeof persisted.sha256Hash !== 'string')
    throw new KisError('invalid_request', '`extensions.persistedQuery` must have `version` 1 and `sha256Hash`.')
  return withoutPrefix(persisted.sha256Hash)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The error code on which clients send the text. */
export const PERSISTED_QUERY_NOT_FOUND = 'PERSISTED_QUERY_NOT_FOUND'

function notFound(): GraphQLError {
  return new GraphQLError('PersistedQueryNotFound', { extensions: { code: PERSISTED_QUERY_NOT_FOUND } })
}

/**
 * Reads a manifest: Apollo's (`apollo-persisted-query-manifest`, version 1), or an object of texts by ID, as Relay and
 * graphql-codegen write it.
 * @throws {Error} the text is neither
 */
export function readManifest(text: string): Manifest {
  const value = JSON.parse(text) as Readonly<Record<string, unknown>> | null
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it must be a JSON object')
  if (value.format === undefined) return new Map(Object.entries(value).map(([id, body]) => entry(id, body)))
  if (value.format !== 'apollo-persisted-query-manifest' || value.version !== 1 || !Array.isArray(value.operations))
    throw new Error('its format must be apollo-persisted-query-manifest, version 1')
  return new Map(value.operations.map(({ id, body }) => entry(id, body)))
}

function entry(id: unknown, body: unknown): readonly [string, string] {
  if (typeof id !== 'string' || id === '' || typeof body !== 'string') throw new Error('each operation must have an id and a text')
  return [withoutPrefix(id), body]
}
