import type { StoredDocument } from '../../subgraphs/common/ports/document-store.ts'

type AnyRecord = StoredDocument & { readonly [field: string]: unknown }

/** What a field of every record of a kind names. `*`: of all kinds. */
const REFERENCES: readonly { readonly of: string; readonly field: string; readonly to: string }[] = [
  { of: '*', field: 'organizationId', to: 'billing/organizations' },
  { of: 'billing/members', field: 'apiKeyId', to: 'billing/api_keys' },
  { of: 'knowledge/documents', field: 'collectionId', to: 'knowledge/collections' },
]
const TARGETS = new Set(REFERENCES.map(({ to }) => to))
const MAX_SHOWN = 5

interface BlobFacts {
  readonly sizeBytes: number
  readonly bytesKey: string
  readonly pieces?: readonly { readonly key: string }[]
  readonly references: Readonly<Record<string, number>>
  readonly counted: { readonly value: number }
  readonly dying: boolean
}

/** Judges whether what records of an archive name is in the archive, too. It keeps the names in memory. */
export class References {
  readonly #ids = new Map<string, Set<string>>()
  readonly #wanted = new Map<string, Map<string, string>>()
  /** Keys of bytes, with the record that names them. */
  readonly #bytes = new Map<string, string>()

  add(kind: string, record: AnyRecord): void {
    const { _id } = record
    if (TARGETS.has(kind)) setOf(this.#ids, kind, () => new Set<string>()).add(_id)
    for (const { of, field, to } of REFERENCES) {
      const named = record[field]
      if ((of === kind || of === '*') && typeof named === 'string')
        setOf(this.#wanted, to, () => new Map<string, string>()).set(named, `${kind} ${_id}`)
    }
    if (kind === 'knowledge/blobs') this.#addBytes(_id, record as unknown as BlobFacts)
    if (kind === 'knowledge/documents' && record.status === 'ready' && record.liveGeneration && record.chunkCount)
      this.#bytes.set(`${_id}_${record.liveGeneration}`, `knowledge/documents ${_id}`)
  }

  /** The bytes with this key are there. */
  addBytes(key: string): void {
    this.#bytes.delete(key)
  }

  /** Sentences about what is lacking; the first few. */
  problems(): readonly string[] {
    const lacking: string[] = []
    for (const [kind, names] of this.#wanted)
      for (const [name, by] of names) if (!this.#ids.get(kind)?.has(name)) lacking.push(`${by} names ${name}, which is not there`)
    for (const [key, by] of this.#bytes) lacking.push(`${by} has bytes ${key}, which are not there`)
    return lacking.length > MAX_SHOWN ? [...lacking.slice(0, MAX_SHOWN), `and ${lacking.length - MAX_SHOWN} more`] : lacking
  }

  /** Those of a running upload have no file yet. */
  #addBytes(_id: string, { sizeBytes, bytesKey, pieces, references, counted, dying }: BlobFacts): void {
    const isUsed = Object.values(references).some((pending) => pending === 0)
    if (dying || !isUsed || sizeBytes === 0 || counted.value === 0) return
    for (const key of pieces?.map((piece) => piece.key) ?? [bytesKey]) this.#bytes.set(key, `knowledge/blobs ${_id}`)
  }
}

function setOf<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}
