import { TERMS_VERSION } from '../../domain/text/text-analysis.ts'
import type { Deps } from '../deps.ts'

const TERMS = 'terms'

type MarkDeps = Pick<Deps, 'store' | 'index'>

/** Records that all chunks of the index have the terms of this version. A record of a later version stays. */
export async function markTerms({ store }: Pick<Deps, 'store'>): Promise<void> {
  await store.indexMarks.insertMissing([{ _id: TERMS, version: TERMS_VERSION }])
  await store.indexMarks.findOneAndUpdate({ _id: TERMS, version: { $lt: TERMS_VERSION } }, { $set: { version: TERMS_VERSION } })
}

/** Returns whether chunks may have terms of an earlier version, so that lexical searches miss some. */
export async function hasOldTerms({ store }: Pick<Deps, 'store'>): Promise<boolean> {
  const mark = await store.indexMarks.findOne({ _id: TERMS })
  return mark === null || mark.version < TERMS_VERSION
}

/**
 * Runs at startup, before anything is written to the index. Marks an empty index, because all new chunks get this
 * version's terms. Otherwise, logs what the operator has to do.
 */
export async function checkTerms({ store, index, log }: MarkDeps & Pick<Deps, 'log'>): Promise<void> {
  if (!(await hasOldTerms({ store }))) return
  if ((await index.listCollections('', 1)).length === 0) return markTerms({ store })
  log.warn(
    {},
    'documents of an earlier version lack words in the chunk index. Run `kis reindex` once: it embeds nothing, and searches continue meanwhile',
  )
}
