import { checkInteger, checkLength, isAbsent, listAt, refuse, textAt } from '../../../common/check.ts'

export interface RerankRequest {
  readonly model: string
  readonly query: string
  readonly documents: readonly string[]
  /** The number of results to return. */
  readonly topN: number
}

/** Cohere's recommended limit. Each engine call has a lower limit of its engine. */
const MAX_DOCUMENTS = 1_000
const MAX_QUERY_CHARACTERS = 8_192
/** Longer than any reranker reads: 8,192 tokens of 4 letters, three times. */
const MAX_DOCUMENT_CHARACTERS = 100_000
/** All documents together: a thousand chunks of 500 tokens. */
const MAX_CHARACTERS = 2_000_000
/** Longer than any model's id. The error for an unknown model repeats it. */
const MAX_MODEL_CHARACTERS = 300

/** @throws {KisError} a field is wrong; has the path of the first one */
export function checkRerankRequest({
  model,
  query,
  documents,
  topN,
}: {
  readonly model: unknown
  readonly query: unknown
  readonly documents: unknown
  readonly topN?: unknown
}): RerankRequest {
  if (textAt(model, 'model') === '') refuse('missing_required_parameter', 'model', 'You must provide a model.')
  checkLength(model as string, 'model', MAX_MODEL_CHARACTERS)
  if (textAt(query, 'query').trim() === '') refuse('invalid_request', 'query', "'query' must not be empty.")
  checkLength(query as string, 'query', MAX_QUERY_CHARACTERS)
  const texts = listAt(documents, 'documents', 1, MAX_DOCUMENTS).map((document, index) => {
    const text = textAt(document, `documents[${index}]`)
    if (text === '') refuse('invalid_request', `documents[${index}]`, 'A document must not be empty.')
    checkLength(text, `documents[${index}]`, MAX_DOCUMENT_CHARACTERS)
    return text
  })
  if (texts.reduce((sum, { length }) => sum + length, 0) > MAX_CHARACTERS)
    refuse('string_above_max_length', 'documents', `All documents together have at most ${MAX_CHARACTERS} characters. Send fewer at once.`)
  checkInteger(topN, 'topN', 1, Number.MAX_SAFE_INTEGER)
  return {
    model: model as string,
    query: query as string,
    documents: texts,
    topN: isAbsent(topN) ? texts.length : Math.min(topN as number, texts.length),
  }
}
