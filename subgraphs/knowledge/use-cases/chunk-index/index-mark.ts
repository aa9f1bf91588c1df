import { TERMS_VERSION } from '../../domain/text/text-analysis.ts'
import type { Deps } from '../deps.ts'

const TERMS = 'terms'

type MarkDeps = Pick<Deps, 'store' | 'index'>

/** Writes that all passages of the index have the terms that this version makes. Later versions are left alone. */
export async function markTerms({ store }: Pick<Deps, 'store'>): Promise<void> {
  await store.indexMarks.insertMissing([{ _id: TERMS, version: TERMS_VERSION }])
  await store.indexMarks.findOneAndUpdate({ _id: TERMS, version: { $lt: TERMS_VERSION } }, { $set: { version: TERMS_VERSION } })
}

/** Whether passages may have the terms of an earlier version, so that a search by words misses some. */
export async function hasOldTerms({ store }: Pick<Deps, 'store'>): Promise<boolean> {
  const mark = await store.indexMarks.findOne({ _id: TERMS })
  return mark === null || mark.version < TERMS_VERSION
}

/**
 * Looks at the start, before anything is written to the index. An empty index is marked: what comes has the terms of
 * this version. Otherwise the log says what the operator has to do.
 */
export async function checkTerms({ store, index, log }: MarkDeps & Pick<Deps, 'log'>): Promise<void> {
  if (!(await hasOldTerms({ store }))) return
  if ((await index.listCollections('', 1)).length === 0) return markTerms({ store })
  log.warn(
    {},
    'documents of an earlier version lack words in the chunk index. Run `kis reindex` once: it embeds nothing, and searches go on meanwhile',
  )
}
