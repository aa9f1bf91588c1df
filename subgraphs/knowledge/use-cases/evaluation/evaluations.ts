import { checkLength, listAt } from '../../../common/check.ts'
import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { checkPlain } from '../../../common/plain-text.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import { type CollectionRecord, type EvaluatedSettings, type EvaluationRecord, newJob } from '../../domain/records.ts'
import type { SearchMode } from '../../domain/search/fuse.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { checkSearch, type SearchInput, type SearchRequest } from '../search/search-request.ts'
import { MAX_QUESTIONS } from './gold-questions.ts'

/** Maximum settings per evaluation. */
const MAX_SETTINGS = 4
const MAX_LABEL = 100
/** Maximum characters of all settings as JSON. Filters may be long. */
const MAX_CHARACTERS = 16_384
/** Maximum stored evaluations per collection. A new one deletes the oldest. */
const MAX_STORED = 50
const EVALUATION_ID = /^evl_/

export interface SettingsInput {
  readonly label?: string | null
  readonly mode?: SearchMode | null
  readonly filter?: unknown
  /** Null: none. Absent: the collection's rerank model. */
  readonly rerankModel?: string | null
  readonly lexicalWeight?: number | null
}

/**
 * Starts an evaluation: a worker searches for every gold question of the collection with each of the settings. Later
 * changes of the questions do not affect it. The caller's key pays for the embeddings.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `invalid_request` if the collection has no questions, or the settings are invalid.
 * @throws {KisError} `in_use` if another evaluation of the collection is running.
 */
export async function startEvaluation(
  deps: Pick<Deps, 'store' | 'ids' | 'clock' | 'wake'>,
  context: LinkContext,
  input: { readonly collectionId: string; readonly settings?: readonly SettingsInput[] | null },
): Promise<EvaluationRecord> {
  const caller = requireEvaluator(context)
  const settings = checkSettings(input.collectionId, input.settings ?? [{}])
  const collection = await getCollection(deps, caller.organizationId, input.collectionId, 'input.collectionId')
  return createEvaluation(deps, caller, collection, { _id: deps.ids('evl'), settings: JSON.stringify(settings) })
}

/** Checks the permissions that a key needs to evaluate a collection. */
export function requireEvaluator({ caller }: Pick<LinkContext, 'caller'>): Principal {
  requireScope(caller, 'knowledge:read')
  return requireScope(caller, 'knowledge:write')
}

/**
 * Records a new evaluation with validated settings for the workers.
 * @throws {KisError} as `startEvaluation`, except for the settings.
 */
export async function createEvaluation(
  { store, clock, wake }: Pick<Deps, 'store' | 'clock' | 'wake'>,
  { organizationId, apiKeyId }: Principal,
  collection: CollectionRecord,
  input: Pick<EvaluationRecord, '_id' | 'settings' | 'changes' | 'maxFallThousandths'>,
): Promise<EvaluationRecord> {
  const collectionId = collection._id
  const questions = await store.goldQuestions.find({ collectionId }, { sort: { _id: 1 }, limit: MAX_QUESTIONS })
  if (questions.length === 0)
    throw new KisError('invalid_request', 'The collection has no gold questions. Add some first.', { param: 'input.collectionId' })
  await deleteOldest({ store }, collectionId)
  const now = clock.now()
  const evaluation: EvaluationRecord = {
    ...input,
    organizationId,
    apiKeyId,
    openKey: collectionId,
    collectionId,
    indexName: indexNameOf(collection),
    questions: JSON.stringify(questions.map(({ _id: id, query, expected }) => ({ id, query, expected }))),
    ranks: '[]',
    status: 'running',
    done: 0,
    total: questions.length,
    cost: '0',
    error: null,
    startedAt: now,
    endedAt: null,
    outbox: [],
    job: newJob('evaluate', organizationId, now),
  }
  await store.evaluations.insertOne(evaluation).catch((error) => {
    throw error instanceof DuplicateKey ? inProgress(error) : error
  })
  wake()
  return evaluation
}

/**
 * Deletes an evaluation. A running evaluation ends; its completed searches stay charged.
 * @throws {NotFound} if the organization has no such evaluation.
 */
export async function deleteEvaluation({ store }: Pick<Deps, 'store'>, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  if (!(await store.evaluations.findOneAndDelete({ _id: id, organizationId }))) throw new NotFound('evaluation', id)
}

/** Returns an evaluation of the caller's organization, or null if there is none. */
export function findEvaluation({ store }: Pick<Deps, 'store'>, context: LinkContext, id: string): Promise<EvaluationRecord | null> {
  const { organizationId } = requireScope(context.caller, 'knowledge:read')
  return store.evaluations.findOne({ _id: id, organizationId })
}

/**
 * Lists the evaluations of a collection. Access is not checked: only a caller that may read the collection has its
 * record.
 */
export function listEvaluations(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
  page: OrderedPage,
): Promise<Connection<EvaluationRecord>> {
  return listById(store.evaluations, { collectionId }, page, EVALUATION_ID)
}

/** @throws {KisError} with the path: the settings are invalid. */
export function checkSettings(collectionId: string, input: readonly SettingsInput[]): readonly EvaluatedSettings[] {
  const settings = listAt(input, 'input.settings', 1, MAX_SETTINGS) as readonly SettingsInput[]
  const checked = settings.map(({ label, ...search }, i): EvaluatedSettings => {
    const param = `input.settings[${i}]`
    if (label != null) {
      checkLength(label, `${param}.label`, MAX_LABEL)
      checkPlain(label, `${param}.label`)
    }
    const { mode, lexicalWeight } = checkAsSearch({ collectionId, query: 'any', ...search }, param)
    const { filter = null, rerankModel } = search
    return { label: label ?? mode, mode, filter, lexicalWeight, ...(rerankModel !== undefined && { rerankModel }) }
  })
  checkLength(JSON.stringify(checked), 'input.settings', MAX_CHARACTERS)
  return checked
}

function checkAsSearch(search: SearchInput, param: string): SearchRequest {
  try {
    return checkSearch(search)
  } catch (error) {
    if (!(error instanceof KisError)) throw error
    throw new KisError(error.code, error.message, { param: `${param}.${error.param?.replace('input.', '')}`, cause: error })
  }
}

async function deleteOldest({ store }: Pick<Deps, 'store'>, collectionId: string): Promise<void> {
  const newest = await store.evaluations.find({ collectionId }, { sort: { _id: -1 }, limit: MAX_STORED })
  const first = newest.at(MAX_STORED - 1)
  if (first) await store.evaluations.deleteMany({ collectionId, _id: { $lte: first._id } })
}

function inProgress(cause: DuplicateKey): KisError {
  return new KisError('in_use', 'An evaluation of the collection is in progress. Wait for its end, or delete it.', {
    param: 'input.collectionId',
    cause,
  })
}
