import { type AccountCollections, openAccountCollections } from '../../subgraphs/billing/portable.ts'
import type {
  CollectionSpec,
  DocumentCollection,
  DocumentStore,
  StoredDocument,
  StoredValue,
} from '../../subgraphs/common/ports/document-store.ts'
import { type AgentCollections, openAgentCollections } from '../../subgraphs/inference/portable.ts'
import { type KnowledgeStore, knowledgeStore } from '../../subgraphs/knowledge/portable.ts'
import { visible } from './format.ts'

/** Marks a field that refers to no record, or to one that may be gone, with the reason. */
interface Free {
  readonly free: string
}
/** The kinds one of which has the record; or why none must have it. */
type Target = readonly string[] | Free

/**
 * The paths of the fields that are called an ID or IDs, except the record's organization. `*`: each member of a list,
 * or of an object with names of its own.
 */
type IdPaths<T> = StoredValue extends T
  ? never
  : T extends string | number | boolean | null | undefined | Date
    ? never
    : T extends readonly (infer Member)[]
      ? `*.${IdPaths<Member>}`
      : string extends keyof T
        ? `*.${IdPaths<T[string & keyof T]>}`
        : { [F in keyof T & string]-?: (F extends `${string}Id` | `${string}Ids` ? F : never) | `${F}.${IdPaths<T[F]>}` }[keyof T & string]

/**
 * What the fields of each kind of record refer to, by the name of its collection in the program. A field that is called
 * an ID and is missing here is a compiler error, so that every new field is decided on. `$key`: the names of the
 * members of an object.
 */
export type ReferencesOf<Collections> = {
  readonly [Name in keyof Collections]: Collections[Name] extends DocumentCollection<infer Record extends StoredDocument>
    ? { readonly [Path in Exclude<IdPaths<Record>, 'organizationId'>]: Target } & { readonly [path: string]: Target }
    : never
}

const free = (why: string): Free => ({ free: why })
const NO_RECORD = free('it is of no record')
const OPERATORS = free('the key of an operator, whose organization may be erased')
const MODEL = free('models are in the catalog')
const HOLD = free('holds are in wallets until they end')
const ERASED = free('what was erased is gone')
const EXPIRES = free('it is deleted after a while, whatever refers to it')
const DELETABLE = free('callers may delete it, whatever refers to it')
const BEFORE = free('it is written after what names it')
/** For fields with JSON that names collections and agents. */
const IN_JSON = free('it names in JSON what callers may delete')
const ORGANIZATION = ['billing/organizations']
const KEY = ['billing/api_keys']
const MEMBER = ['billing/members']
const COLLECTION = ['knowledge/collections']
const DOCUMENT = ['knowledge/documents']
/** The file of a document that callers can see: a document that is being deleted drops its file first. */
const FILE = ['knowledge/files']
const RUN = ['inference/runs', 'inference/workflow_runs']
const JOB = { 'job.organizationId': ORGANIZATION, 'job.slowOrganizationId': ORGANIZATION }

const BILLING: ReferencesOf<AccountCollections> = {
  organizations: {
    owners: MEMBER,
    'lastChange.organizationId': ORGANIZATION,
    'lastChange.apiKeyId': OPERATORS,
    'import.apiKeyId': BEFORE,
  },
  organizationChanges: { apiKeyId: OPERATORS },
  apiKeys: { ancestors: KEY, memberId: BEFORE },
  members: { apiKeyId: KEY },
  invitations: { invitedBy: KEY },
  sessions: { apiKeyId: KEY, memberId: MEMBER },
  erasures: { documentId: ERASED, memberId: ERASED, apiKeyIds: ERASED, documentIds: ERASED, requestedBy: OPERATORS },
  wallets: {
    _id: BEFORE,
    'spending.$key': KEY,
    'holds.*.apiKeyId': KEY,
    'holds.*.ancestors': KEY,
    'holds.*.requestId': NO_RECORD,
    'holds.*.runHoldId': HOLD,
    'holds.*.modelId': MODEL,
    'outbox.*.entry.organizationId': ORGANIZATION,
    'outbox.*.entry.runHoldId': HOLD,
    'outbox.*.usage.organizationId': ORGANIZATION,
    'outbox.*.usage.apiKeyId': KEY,
    'outbox.*.usage.modelId': MODEL,
    'outbox.*.usage.requestId': NO_RECORD,
  },
  entries: { runHoldId: HOLD },
  usage: { apiKeyId: KEY, modelId: MODEL, requestId: NO_RECORD },
  usageTotals: { apiKeyId: KEY, modelId: MODEL },
  bootstrap: { organizationId: BEFORE, apiKeyId: BEFORE },
  webhookEndpoints: {},
  webhookFeeds: {},
  webhookEvents: { subject: DELETABLE },
  webhookDeliveries: { endpointId: DELETABLE, eventId: EXPIRES, subject: DELETABLE, queuedIn: BEFORE },
  webhookLanes: { endpointId: DELETABLE, subject: DELETABLE },
  taskLeases: {},
}

const INFERENCE: ReferencesOf<AgentCollections> = {
  agents: { definition: IN_JSON },
  agentVersions: { _id: BEFORE, definition: IN_JSON },
  runs: {
    apiKeyId: KEY,
    agentId: DELETABLE,
    threadId: DELETABLE,
    holdId: HOLD,
    'job.workflowId': DELETABLE,
    ...JOB,
  },
  runEvents: { runId: RUN },
  runInputs: { runId: BEFORE },
  retainedRuns: {},
  threads: { agentId: DELETABLE, added: EXPIRES, by: KEY },
  workflows: { definition: IN_JSON },
  workflowVersions: { _id: BEFORE, definition: IN_JSON },
  workflowRuns: {
    apiKeyId: KEY,
    workflowId: DELETABLE,
    holdId: HOLD,
    'error.nodeId': NO_RECORD,
    'agents.$key': DELETABLE,
    'job.workflowId': DELETABLE,
    ...JOB,
  },
  keyedCalls: { holdId: HOLD, 'step.runId': RUN, streamId: NO_RECORD },
  replicas: {},
  keyRates: {},
  taskLeases: {},
  events: { subject: DELETABLE },
  eventHeads: { 'copying.*.event.organizationId': ORGANIZATION, 'copying.*.event.subject': DELETABLE },
}

const KNOWLEDGE: ReferencesOf<KnowledgeStore> = {
  collections: { 'reembedding.id': ['knowledge/reembeddings'], ...JOB },
  files: { 'attachments.$key': BEFORE, 'attachments.*': COLLECTION, partOf: DELETABLE },
  blobs: { 'references.$key': BEFORE },
  uploads: { fileId: BEFORE },
  sources: { collectionId: COLLECTION, apiKeyId: KEY, documentId: DELETABLE, formerFileId: DELETABLE, nextFileId: BEFORE },
  documents: {
    collectionId: COLLECTION,
    fileId: FILE,
    apiKeyId: KEY,
    externalId: free('it is of the caller'),
    parentId: DELETABLE,
    'payer.organizationId': OPERATORS,
    'payer.apiKeyId': OPERATORS,
    'replacement.fileId': FILE,
    'versions.*.fileId': DELETABLE,
    'embedding.holdId': HOLD,
    ...JOB,
  },
  sketches: { documentId: free('searches pass over those of a document that is gone') },
  usage: { 'chunks.$key': DELETABLE },
  goldQuestions: { collectionId: COLLECTION },
  evaluations: { collectionId: COLLECTION, apiKeyId: KEY, ...JOB },
  evaluationWatches: { collectionId: COLLECTION, apiKeyId: KEY, 'starting.id': BEFORE },
  indexMarks: {},
  reembeddings: { collectionId: COLLECTION, apiKeyId: KEY, 'at.documentId': DELETABLE, 'hold.id': HOLD, ...JOB },
  events: { subject: DELETABLE },
  eventHeads: { 'copying.*.event.organizationId': ORGANIZATION, 'copying.*.event.subject': DELETABLE },
  taskLeases: {},
}

/** Kinds that only the archive of an organization has. Its other kinds have the fields of stored records. */
const OF_ORGANIZATION: Readonly<Record<string, Readonly<Record<string, Target>>>> = {
  'billing/organization': { owners: MEMBER },
  'billing/spend_limits': { _id: KEY },
  'knowledge/bytes': { files: FILE },
  'knowledge/unread': { documentId: DOCUMENT },
  'knowledge/text_maps': { documentId: DOCUMENT },
  'knowledge/lines': { documentId: DOCUMENT },
  'knowledge/passages': { documentId: DOCUMENT },
}

/** The targets of the fields of each kind, by the name of the kind and their paths. */
export const REFERENCES: ReadonlyMap<string, ReadonlyMap<string, Target>> = new Map(
  [
    ...byKind('billing', openAccountCollections, BILLING),
    ...byKind('inference', openAgentCollections, INFERENCE),
    ...byKind('knowledge', knowledgeStore, KNOWLEDGE),
    ...Object.entries(OF_ORGANIZATION),
  ].map(([kind, targets]) => [kind, new Map(Object.entries(targets))]),
)
const TARGETS = new Set(
  [...REFERENCES.values()].flatMap((targets) => [...targets.values()].flatMap((target) => ('free' in target ? [] : target))),
)
const CHECKED = new Map(
  [...REFERENCES].map(([kind, targets]) => [
    kind,
    [...targets].flatMap(([path, target]) => ('free' in target ? [] : [{ path: path.split('.'), to: target }])),
  ]),
)
/** The start of a sentence of an import about what `problems` found. */
export const NOT_WHOLE = 'Incomplete, as it was when it was exported'
const MAX_SHOWN = 5
/** Characters of a problem. Whoever created the archive chose the IDs. */
const MAX_CHARACTERS = 300
/** Records of one kind whose IDs are held in memory, some 100 bytes each. JavaScript's sets hold few more members. */
const MAX_JUDGED = 16_000_000

interface BlobFacts {
  readonly sizeBytes: number
  readonly bytesKey: string
  readonly pieces?: readonly { readonly key: string }[]
  readonly references: Readonly<Record<string, number>>
  readonly counted: { readonly value: number }
  readonly dying: boolean
}

/**
 * Checks whether the archive contains what its records refer to. Holds in memory the IDs of the kinds that are referred
 * to, and references to records that have not come yet.
 */
export class References {
  readonly #ids = new Map<string, Set<string>>([...TARGETS].map((kind) => [kind, new Set()]))
  /** References to records that have not come yet, with their kinds and the referring record. */
  readonly #wanted = new Map<string, { readonly to: readonly string[]; readonly by: string }>()
  /** Keys of bytes, with the record that refers to them. */
  readonly #bytes = new Map<string, string>()
  /** Kinds with more records than can be checked. */
  readonly #large = new Set<string>()
  /** Erased organizations, which lose their keys and records one after the other. */
  readonly #erased = new Set<unknown>()

  /** @param kind a kind of an archive of any scope */
  add(kind: string, record: unknown): void {
    const stored = kind.replaceAll('-', '_')
    const { _id, organizationId, listed, deletedAt } = (record ?? {}) as { readonly [field: string]: unknown }
    const ids = this.#ids.get(stored)
    if (ids && ids.size >= MAX_JUDGED) this.#large.add(stored)
    else if (typeof _id === 'string') ids?.add(_id)
    if (stored === 'billing/organizations' && deletedAt) this.#erased.add(_id)
    if (this.#erased.has(organizationId)) return
    const by = _id === undefined ? kind : `${kind} ${_id}`
    for (const { path, to } of CHECKED.get(stored) ?? []) {
      if (to === FILE && listed === false) continue
      for (const name of textsAt(record, path))
        if (!this.#has(name, to) && this.#wanted.size < MAX_JUDGED) this.#wanted.set(`${to} ${name}`, { to, by })
    }
  }

  /** Adds a record of an installation, which may have bytes. */
  addStored(kind: string, record: StoredDocument): void {
    this.add(kind, record)
    const { _id, status, liveGeneration, chunkCount } = record as StoredDocument & { readonly [field: string]: unknown }
    if (kind === 'knowledge/blobs') this.#addBlob(_id, record as unknown as BlobFacts)
    if (kind === 'knowledge/documents' && status === 'ready' && liveGeneration && chunkCount)
      this.#bytes.set(`${_id}_${liveGeneration}`, `${kind} ${_id}`)
  }

  /** Notes that the archive contains the bytes with this key. */
  addBytes(key: string): void {
    this.#bytes.delete(key)
  }

  /** Returns sentences about the first few missing records. */
  problems(): readonly string[] {
    const lacking = [...this.#large].map((kind) => `it has too many ${kind} to check what refers to them`)
    for (const [wanted, { to, by }] of this.#wanted) {
      const name = wanted.slice(`${to} `.length)
      if (!this.#has(name, to)) lacking.push(`${by} refers to ${name}, which is missing`)
    }
    for (const [key, by] of this.#bytes) lacking.push(`${by} has bytes ${key}, which are missing`)
    const shown = lacking.slice(0, MAX_SHOWN).map((problem) => visible(problem.slice(0, MAX_CHARACTERS)))
    return lacking.length > MAX_SHOWN ? [...shown, `and ${lacking.length - MAX_SHOWN} more`] : shown
  }

  #has(name: string, to: readonly string[]): boolean {
    return to.some((kind) => this.#large.has(kind) || this.#ids.get(kind)!.has(name))
  }

  /** Adds the keys of a blob's bytes. The pieces of a running upload have no file yet. */
  #addBlob(_id: string, { sizeBytes, bytesKey, pieces, references, counted, dying }: BlobFacts): void {
    const isUsed = Object.values(references).some((pending) => pending === 0)
    if (dying || !isUsed || sizeBytes === 0 || counted.value === 0) return
    for (const key of pieces?.map((piece) => piece.key) ?? [bytesKey]) this.#bytes.set(key, `knowledge/blobs ${_id}`)
  }
}

/** Returns the references by the names of stored collections. Every record may refer to its organization. */
function byKind<Collections extends object>(
  subgraph: string,
  declare: (store: Pick<DocumentStore, 'collection'>) => Collections,
  references: ReferencesOf<Collections>,
): readonly (readonly [string, Readonly<Record<string, Target>>])[] {
  const declared = declare({ collection: ({ name }: CollectionSpec) => name } as never)
  return Object.entries(declared).map(([property, name]) => [
    `${subgraph}/${name}`,
    { organizationId: ORGANIZATION, ...references[property as keyof Collections] },
  ])
}

function textsAt(value: unknown, [field, ...rest]: readonly string[]): readonly string[] {
  if (field === undefined) return [value].flat().filter((text) => typeof text === 'string')
  if (typeof value !== 'object' || value === null) return []
  if (field === '$key') return Object.keys(value)
  const members = field === '*' ? Object.values(value) : [(value as Readonly<Record<string, unknown>>)[field]]
  return members.flatMap((member) => textsAt(member, rest))
}
