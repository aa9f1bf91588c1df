import { type Collection, type Db, MongoServerError } from 'mongodb'
import { KisError } from '../../errors.ts'
import type { CollectionSpec, IndexSpec } from '../../ports/document-store.ts'
import { PRIMARY_KEY } from '../documents/index-choice.ts'
import { translated } from './failures.ts'

const NAMESPACE_NOT_FOUND = 26

type IndexKeys = Readonly<Record<string, 1>>

interface WantedIndex {
  readonly name: string
  readonly key: IndexKeys
  readonly unique?: boolean
  readonly sparse?: boolean
  readonly partialFilterExpression?: object
}

interface FoundIndex extends Omit<WantedIndex, 'key'> {
  readonly key: Readonly<Record<string, unknown>>
  readonly collation?: object
}

/** `_id` ends an index that is not unique, as it ends every order. So MongoDB never sorts in memory. */
function toIndexKeys(index: IndexSpec): IndexKeys {
  const endsWithId = index.unique || index.fields.includes('_id')
  return Object.fromEntries([...index.fields, ...(endsWithId ? [] : ['_id'])].map((field) => [field, 1]))
}

function describeIndex(index: IndexSpec): WantedIndex {
  const key = toIndexKeys(index)
  const name = Object.entries(key).flat().join('_')
  if (index.unique) return { name, key, unique: true, ...(index.sparse && { sparse: true }) }
  // Every document has an `_id`, so a sparse index that ends with it would contain them all.
  return { name, key, ...(index.sparse && { partialFilterExpression: { [index.fields[0]!]: { $exists: true } } }) }
}

/**
 * @throws {TypeError} a unique sparse index has several fields: a defect of the caller. MongoDB would index a document
 * with any of them.
 */
export function checkSparse({ name, indexes }: CollectionSpec): void {
  for (const { fields, unique, sparse } of indexes)
    if (unique && sparse && fields.length > 1) throw new TypeError(`a unique sparse index of ${name} has several fields`)
}

/**
 * Creates the missing indexes of the collection, and waits for those that are still being built: queries cannot use
 * them before. Returns the problems of the existing ones, as sentences. An index with the right keys may have any name.
 * `db` is of a client without a time limit: a build may take hours.
 * @throws {ServiceUnavailable} the server cannot serve
 */
export async function createIndexes(db: Db, spec: CollectionSpec, what: string): Promise<readonly string[]> {
  const collection = db.collection(spec.name)
  try {
    const found = await readIndexes(collection)
    const problems: string[] = []
    const existing: WantedIndex[] = []
    const missing: WantedIndex[] = []
    for (const wanted of spec.indexes.map(describeIndex)) {
      // Queries name their index. One with other documents, or in another order, would give wrong results.
      const same = found.find((one) => shown(one) === shown(wanted))
      const other = found.find((one) => one.name === wanted.name || said(one.key) === said(wanted.key))
      if (same) existing.push({ ...wanted, name: same.name })
      else if (!other) missing.push(wanted)
      else
        problems.push(
          `the index ${other.name} of ${spec.name} is ${shown(other)}, not ${shown(wanted)}; drop it, and the service creates it again`,
        )
    }
    // A server lists an index from when its build begins, and replies to this when the build has ended.
    if (existing.length > 0) problems.push(...(await create(collection, existing)))
    for (const wanted of missing) problems.push(...(await create(collection, [wanted])))
    return problems
  } catch (error) {
    throw translated(error, spec.name, what)
  }
}

/** Gives the server's objections: documents that are equal in a unique index, or another index in the way. */
async function create(collection: Collection, indexes: WantedIndex[]): Promise<readonly string[]> {
  try {
    await collection.createIndexes(indexes)
    return []
  } catch (error) {
    const { collectionName: name } = collection
    if (!(error instanceof MongoServerError) || translated(error, name, '') instanceof KisError) throw error
    return [`the index ${indexes.map(shown).join(', ')} of ${name} could not be created: ${error.message}`]
  }
}

async function readIndexes(collection: Collection): Promise<readonly FoundIndex[]> {
  try {
    return (await collection.listIndexes().toArray()) as FoundIndex[]
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return []
    throw error
  }
}

function said(key: object): string {
  return Object.entries(key)
    .map(([field, direction]) => `${field}: ${Number(direction)}`)
    .join(', ')
}

function shown({ key, unique, sparse, partialFilterExpression, collation }: FoundIndex): string {
  const kind = `${unique ? 'unique ' : ''}${sparse ? 'sparse ' : ''}{ ${said(key)} }`
  const of = partialFilterExpression ? ` of ${JSON.stringify(partialFilterExpression)}` : ''
  return `${kind}${of}${collation ? ' with a collation' : ''}`
}

/** The hint for `find`, so that the server uses the index for which the query was checked. */
export function toHint(index: IndexSpec): IndexKeys {
  return index === PRIMARY_KEY ? { _id: 1 } : toIndexKeys(index)
}
