import { checkInteger, checkLength, listAt, refuse } from '../../../common/check.ts'
import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { Expected } from '../../domain/evaluation/ranks.ts'
import type { CollectionRecord, GoldQuestionRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'

/** Maximum questions per collection. An evaluation searches for each of them, and stores its ranks in one record. */
export const MAX_QUESTIONS = 500
/** Maximum questions per call. */
const MAX_ADDED = 100
const MAX_EXPECTED = 5
const MAX_QUERY = 1_000
const MAX_PHRASE = 300
const MAX_FILE_NAME = 255
const MAX_PAGE = 1_000_000
const QUESTION_ID = /^gq_/

export interface GoldQuestionInput {
  readonly query: string
  readonly expected: readonly { readonly [member in keyof Expected]?: Expected[member] }[]
}

/**
 * Adds questions to a collection: all of them or, if it throws, none.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `invalid_request` and similar codes, with the path, if a question is invalid.
 * @throws {KisError} `storage_quota_exceeded` if the collection would have more than 500 questions.
 */
export async function addGoldQuestions(
  { store, ids, clock }: Pick<Deps, 'store' | 'ids' | 'clock'>,
  context: LinkContext,
  input: { readonly collectionId: string; readonly questions: readonly GoldQuestionInput[] },
): Promise<readonly GoldQuestionRecord[]> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const inputs = listAt(input.questions, 'input.questions', 1, MAX_ADDED) as readonly GoldQuestionInput[]
  const checked = inputs.map((question, i) => checkQuestion(question, `input.questions[${i}]`))
  const { _id: collectionId } = await getCollection({ store }, organizationId, input.collectionId, 'input.collectionId')
  if ((await store.goldQuestions.countDocuments({ collectionId })) + checked.length > MAX_QUESTIONS)
    throw new KisError('storage_quota_exceeded', `A collection has at most ${MAX_QUESTIONS} gold questions. Delete some first.`)
  const createdAt = clock.now()
  const questions = checked.map((question) => ({ _id: ids('gq'), organizationId, collectionId, ...question, createdAt }))
  await store.goldQuestions.insertMissing(questions)
  return questions
}

/**
 * Deletes a question. Evaluations that used it stay unchanged.
 * @throws {NotFound} if the organization has no such question.
 */
export async function deleteGoldQuestion({ store }: Pick<Deps, 'store'>, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  if (!(await store.goldQuestions.findOneAndDelete({ _id: id, organizationId }))) throw new NotFound('gold question', id)
}

/** Returns a question of the caller's organization, or null if there is none. */
export async function findGoldQuestion(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  id: string,
): Promise<GoldQuestionRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return store.goldQuestions.findOne({ _id: id, organizationId })
}

/**
 * Lists the questions of a collection. Access is not checked: only a caller that may read the collection has its record.
 */
export function listGoldQuestions(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
  page: OrderedPage,
): Promise<Connection<GoldQuestionRecord>> {
  return listById(store.goldQuestions, { collectionId }, page, QUESTION_ID)
}

function checkQuestion({ query, expected }: GoldQuestionInput, param: string): Pick<GoldQuestionRecord, 'query' | 'expected'> {
  if (query.trim() === '') refuse('invalid_request', `${param}.query`, 'The query must not be empty.')
  checkLength(query, `${param}.query`, MAX_QUERY)
  const each = listAt(expected, `${param}.expected`, 1, MAX_EXPECTED) as GoldQuestionInput['expected']
  return { query, expected: each.map((one, i) => checkExpected(one, `${param}.expected[${i}]`)) }
}

function checkExpected({ fileName = null, page = null, phrase = null }: GoldQuestionInput['expected'][number], param: string): Expected {
  if (fileName === null && phrase === null)
    refuse('invalid_request', param, 'An expected chunk needs the name of its file, a phrase, or both.')
  if (fileName !== null) checkLength(fileName, `${param}.fileName`, MAX_FILE_NAME)
  if (phrase !== null && phrase.trim() === '') refuse('invalid_request', `${param}.phrase`, 'The phrase must not be empty.')
  if (phrase !== null) checkLength(phrase, `${param}.phrase`, MAX_PHRASE)
  checkInteger(page, `${param}.page`, 1, MAX_PAGE)
  return { fileName, page, phrase }
}
