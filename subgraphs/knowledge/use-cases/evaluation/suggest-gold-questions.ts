import type { ErrorCode } from '../../../../schema/errors.ts'
import { checkInteger, listAt } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { type Expected, fold } from '../../domain/evaluation/ranks.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { detectLanguage, type Language } from '../../domain/text/language.ts'
import { normaliseText } from '../../domain/text/normalise-text.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { type PickedChunk, pickRandomChunks } from './pick-chunks.ts'

const MAX_COUNT = 20
const DEFAULT_COUNT = 10
const MAX_DOCUMENTS = 20
/** Chunks per call of the model. The calls run in parallel. */
const AT_ONCE = 5
/** Chunks are shorter, except in scripts without spaces. */
const MAX_CHARACTERS = 8_000
const MAX_HEADING_CHARACTERS = 2_000
/** A phrase with fewer letters occurs in many chunks. */
const MIN_PHRASE = 3
/** Errors of the model that the client can fix. */
const ERRORS_OF_MODEL: readonly ErrorCode[] = ['model_not_found', 'residency_policy_violation']

export interface SuggestInput {
  readonly collectionId: string
  /** Null or absent: any document of the collection. */
  readonly documentIds?: readonly string[] | null
  readonly model: string
  /** Number of questions, 1 to 20. */
  readonly count?: number | null
  /** Whether each chunk also gets a question in the other language. */
  readonly otherLanguage?: boolean | null
}

/** A question that a model suggests. A person who agrees adds it to the gold questions. */
interface Suggestion {
  readonly query: string
  readonly language: Language
  readonly expected: readonly [Expected]
  readonly chunk: StoredChunk
  readonly document: DocumentRecord
}

interface Suggestions {
  readonly suggestions: readonly Suggestion[]
  /**
   * Questions of the model that were discarded: wrong language, duplicate, or a phrase that the chunk does not contain.
   */
  readonly dropped: number
  /** Why some of the chunks got no questions. Null: no error. */
  readonly error: ErrorCode | null
  /** In nano-USD. */
  readonly cost: bigint
}

/**
 * Lets a chat model suggest gold questions about randomly picked chunks. Nothing is stored. The caller's key pays for
 * the model, even for a call whose questions are all discarded.
 * @throws {NotFound} if the organization has no such collection, or the collection no such document.
 * @throws {KisError} `invalid_request` and similar codes, with the path, if the input is invalid, or no chunk is
 * suitable.
 * @throws {KisError} as `Inference.suggestQuestions`, if every call fails.
 */
export async function suggestGoldQuestions(
  deps: Pick<Deps, 'store' | 'index' | 'inference'>,
  context: LinkContext,
  input: SuggestInput,
): Promise<Suggestions> {
  const caller = requireScope(context.caller, 'knowledge:read')
  const count = input.count ?? DEFAULT_COUNT
  checkInteger(count, 'input.count', 1, MAX_COUNT)
  if (input.documentIds != null) listAt(input.documentIds, 'input.documentIds', 1, MAX_DOCUMENTS)
  const collection = await getCollection(deps, caller.organizationId, input.collectionId, 'input.collectionId')
  const perChunk = input.otherLanguage ? 2 : 1
  const picked = await pickRandomChunks(deps, collection, input.documentIds ?? null, Math.ceil(count / perChunk))
  if (picked.length === 0) {
    const param = input.documentIds == null ? 'input.collectionId' : 'input.documentIds'
    throw new KisError('invalid_request', 'There is no chunk to ask about. Attach documents first, and wait until they are ready.', {
      param,
    })
  }
  const prompted = picked.map((pick) => ({ ...pick, languages: languagesOf(pick.chunk, input.otherLanguage ?? false) }))
  const batches = Array.from({ length: Math.ceil(prompted.length / AT_ONCE) }, (_, i) => prompted.slice(i * AT_ONCE, (i + 1) * AT_ONCE))
  const outcomes = await Promise.allSettled(batches.map((batch) => suggestBatch(deps, { ...context, caller }, input.model, batch)))
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  const unexpected = failures.find((error) => !(error instanceof KisError) || context.signal.aborted)
  if (unexpected !== undefined || failures.length === outcomes.length) throw unexpected ?? failures[0]
  const results = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const valid = distinct(results.flatMap(({ suggestions }) => suggestions)).slice(0, count)
  const [failure] = failures as readonly KisError[]
  return {
    suggestions: valid,
    dropped: results.reduce((sum, { questions }) => sum + questions, 0) - valid.length,
    error: failure?.code ?? null,
    cost: results.reduce((sum, { cost }) => sum + cost, 0n),
  }
}

type PromptedChunk = PickedChunk & { readonly languages: readonly Language[] }

async function suggestBatch(
  { inference }: Pick<Deps, 'inference'>,
  context: CallContext,
  modelId: string,
  batch: readonly PromptedChunk[],
) {
  const excerpts = batch.map(({ chunk, languages }) => ({ ...toExcerpt(chunk), languages }))
  try {
    const { questions, cost } = await inference.suggestQuestions({ modelId, passages: excerpts }, context)
    const suggestions = questions.flatMap(({ passage, question, phrase }) => judge(batch[passage], question, phrase))
    return { suggestions, questions: questions.length, cost }
  } catch (error) {
    if (!(error instanceof KisError) || !ERRORS_OF_MODEL.includes(error.code)) throw error
    throw new KisError(error.code, error.message, { param: 'input.model', cause: error })
  }
}

/** Adds the headings, which say what a chunk is about but are not part of its text. */
function toExcerpt({ headingPath, text }: StoredChunk) {
  return { heading: headingPath.join(' › ').slice(0, MAX_HEADING_CHARACTERS), text: text.slice(0, MAX_CHARACTERS) }
}

/** Returns the chunk's own language first. */
function languagesOf({ language, text }: StoredChunk, both: boolean): readonly Language[] {
  const own = language === 'ar' || language === 'en' ? language : (detectLanguage(text) ?? 'en')
  return both ? [own, own === 'ar' ? 'en' : 'ar'] : [own]
}

/**
 * Validates the model's output against the chunk. The chunk is untrusted text, and so is what the model says about it.
 */
function judge(pick: PromptedChunk | undefined, question: string, phrase: string): readonly Suggestion[] {
  if (!pick) return []
  const { chunk, document, languages } = pick
  const query = inOneLine(question)
  const language = detectLanguage(query)
  if (query === '' || language === null || !languages.includes(language)) return []
  const words = fold(phrase)
  if (words.length < MIN_PHRASE || !fold(chunk.text).includes(words)) return []
  const page = chunk.pageStart !== null && (chunk.pageEnd ?? chunk.pageStart) === chunk.pageStart ? chunk.pageStart : null
  return [{ query, language, expected: [{ fileName: document.fileName, page, phrase: inOneLine(phrase) }], chunk, document }]
}

function inOneLine(text: string): string {
  return normaliseText(text).replaceAll(/\s+/g, ' ').trim()
}

function distinct(suggestions: readonly Suggestion[]): readonly Suggestion[] {
  return [...new Map(suggestions.map((suggestion) => [fold(suggestion.query), suggestion])).values()]
}
