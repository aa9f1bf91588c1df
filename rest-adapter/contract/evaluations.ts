import { type Static, Type } from '@sinclair/typebox'
import {
  array,
  boolean,
  closed,
  constant,
  define,
  described,
  extend,
  integer,
  nullable,
  number,
  object,
  oneOf,
  operation,
  optional,
  string,
} from './build.ts'
import { CollectionId } from './collections.ts'
import { SearchFilter } from './search.ts'
import { Deletion, Failure, listOf, Page, Progress, UnixSeconds } from './shared.ts'

export const ExpectedChunk = define('ExpectedPassage').closed(
  'Describes a chunk that a good search finds: its file, a phrase, or both. A chunk meets it if it meets every field ' +
    'that is not null.',
  {
    file_name: optional(nullable(string('The name of the file.', { minLength: 1, maxLength: 255 }))),
    page: optional(nullable(integer('A page of the chunk, counted from 1.', { minimum: 1, maximum: 1_000_000 }))),
    phrase: optional(
      nullable(
        string('Words that the chunk contains. Case, white space, diacritics and the forms of Arabic letters do not matter.', {
          minLength: 1,
          maxLength: 300,
        }),
      ),
    ),
  },
)
export type ExpectedChunk = Static<typeof ExpectedChunk>

export const GoldQuestionAddition = define('GoldQuestionAddition').closed(
  {
    questions: array(
      closed({
        query: string('The question.', { minLength: 1, maxLength: 1000 }),
        expected: array(ExpectedChunk, 'The chunks that a good search finds.', { minItems: 1, maxItems: 5 }),
      }),
      'The questions to add.',
      { minItems: 1, maxItems: 100 },
    ),
  },
  {
    example: {
      questions: [
        { query: 'When was the harbour built?', expected: [{ file_name: 'history.pdf', page: 12 }, { phrase: 'built in 1931' }] },
      ],
    },
  },
)

export const GoldQuestion = define('GoldQuestion').object('A question whose answer you know.', {
  id: string('The id: `gq_…`.'),
  object: constant('gold_question'),
  created_at: UnixSeconds,
  query: string('The question.'),
  expected: array(ExpectedChunk, 'The chunks that a good search finds.'),
})
export type GoldQuestion = Static<typeof GoldQuestion>

export const GoldQuestionList = define('GoldQuestionList').as(listOf(GoldQuestion))

export const GoldQuestionSuggesting = define('GoldQuestionSuggesting').closed(
  {
    model: string('The id of the chat model.', { minLength: 1, maxLength: 200 }),
    count: optional(integer('The most questions.', { minimum: 1, maximum: 20, default: 10 })),
    document_ids: optional(
      array(string(), 'The ids of documents of the collection. Default: the newest 1000 ready documents.', { minItems: 1, maxItems: 20 }),
    ),
    other_language: optional(
      boolean(
        'Whether to propose questions about each chunk in both Arabic and English, for half as many chunks. Otherwise a question ' +
          'has the language of its chunk.',
        { default: false },
      ),
    ),
  },
  { example: { model: 'gpt-4o-mini', count: 10 } },
)

export const GoldQuestionSuggestions = define('GoldQuestionSuggestions').object('Gold questions that a chat model proposes.', {
  object: constant('gold_question.suggestions'),
  data: array(
    object({
      query: string('The question.'),
      language: string('The BCP 47 code of its language: `ar` or `en`.'),
      expected: array(
        ExpectedChunk,
        'The chunk that answers the question: the file, the page if the chunk has only one, and the words of the answer.',
      ),
      document_id: string('The id of the document.'),
      chunk_id: string('The id of the chunk.'),
      text: string('The chunk.'),
    }),
    'The questions: at most as many as you requested.',
  ),
  dropped: integer(
    "The number of the model's questions that were left out: their words are not in the chunk, they are in another language, " +
      'or they are duplicates.',
  ),
  error: nullable(string('The code of the error, if it prevented questions about some of the chunks.')),
  cost_usd: string("The price of the model's answers."),
})

export const EvaluationSettings = define('EvaluationSettings').closed('How an evaluation searches.', {
  label: optional(string('Your name for the settings. Default: the mode.', { maxLength: 100 })),
  mode: optional(oneOf(['hybrid', 'vector', 'lexical'], 'How to rank the chunks.', { default: 'hybrid' })),
  filter: optional(SearchFilter),
  rerank_model: optional(
    nullable(
      string("The id of a rerank model that orders the best 50 chunks. Leave it out to use the collection's default; null means none.", {
        minLength: 1,
        maxLength: 200,
      }),
    ),
  ),
  lexical_weight: optional(
    number('The weight of words relative to meaning in the mode `hybrid`.', { minimum: 0, maximum: 10, default: 1 }),
  ),
})

export const EvaluationStart = define('EvaluationStart').closed(
  {
    settings: optional(
      array(EvaluationSettings, 'The settings to compare. Default: one, with the default mode.', { minItems: 1, maxItems: 4 }),
    ),
  },
  {
    example: {
      settings: [
        { label: 'both', mode: 'hybrid' },
        { label: 'words only', mode: 'lexical' },
      ],
    },
  },
)

export const EvaluatedSettings = define('EvaluatedSettings').object('How an evaluation searched.', {
  label: string('Your name for the settings, or the mode.'),
  mode: oneOf(['hybrid', 'vector', 'lexical'], 'How the search ranks the chunks.'),
  filter: described(nullable(SearchFilter), 'The filter of the search. Null if there is none.'),
  rerank_model: nullable(string('The id of the rerank model that you named.')),
  lexical_weight: number('The weight of words relative to meaning.'),
})
export type EvaluatedSettings = Static<typeof EvaluatedSettings>

export const EvaluationScore = define('EvaluationScore').object(
  'How well the search found the expected chunks in one ranking. Each figure is a mean over the questions, from 0 to 1.',
  {
    ranking: oneOf(
      ['combined', 'words', 'meaning'],
      'The ranking: that of the result, or by words alone or by meaning alone, of the chunks in the result.',
    ),
    language: nullable(string('The BCP 47 code of the questions, `ar` or `en`. Null for all questions.')),
    question_count: integer('The number of questions.'),
    recall_at_1: number('The share of the expected chunks at rank 1.'),
    recall_at_3: number('The share of the expected chunks among the first 3 hits.'),
    recall_at_10: number('The share of the expected chunks among the first 10 hits.'),
    ndcg_at_10: number('The normalised discounted cumulative gain of the first 10 hits.'),
    mrr_at_10: number('The mean reciprocal rank of the first hit that meets an expectation.'),
  },
)

export const ScoredSettings = define('ScoredSettings').extend([EvaluatedSettings], {
  scores: array(EvaluationScore, 'For each ranking, the scores of all questions, then those of each language.'),
})

export const EvaluationFall = define('EvaluationFall').object('A measure that fell.', {
  settings: string('The label of the settings.'),
  language: nullable(string('The BCP 47 code of the questions, `ar` or `en`. Null for all questions.')),
  measure: oneOf(['recall_at_1', 'recall_at_3', 'recall_at_10', 'ndcg_at_10', 'mrr_at_10'], 'The measure.'),
  before: number('Its value in the previous evaluation, from 0 to 1.'),
  after: number('Its value now, from 0 to 1.'),
})

export const EvaluationComparison = define('EvaluationComparison').object('An evaluation beside the one before it.', {
  baseline_evaluation_id: string('The id of the previous evaluation.'),
  question_count: integer('The number of questions that both evaluations have. Only these are compared.'),
  falls: array(EvaluationFall, "The measures of the result's ranking that fell by more than the watch allows."),
})
export type EvaluationComparison = Static<typeof EvaluationComparison>

export const EvaluationWatchSetting = define('EvaluationWatchSetting').closed(
  {
    settings: optional(
      array(EvaluationSettings, 'The settings to compare. Default: one, with the default mode.', { minItems: 1, maxItems: 4 }),
    ),
    min_interval_seconds: optional(
      integer('The least time between two evaluations.', { minimum: 3600, maximum: 2_592_000, default: 86400 }),
    ),
    max_fall: optional(
      nullable(
        number('By how much a measure may fall before webhooks get the event `evaluation.score_fell`. Null means no event.', {
          minimum: 0.01,
          maximum: 1,
          default: 0.05,
        }),
      ),
    ),
  },
  { example: { min_interval_seconds: 3600, max_fall: 0.1 } },
)

export const CollectionChanges = define('CollectionChanges').object('How often a collection has changed.', {
  added: integer('Documents that searches find for the first time.'),
  replaced: integer('New versions of documents.'),
  deleted: integer('Deleted documents.'),
  updated: integer("Changes of a document's name or metadata."),
  settings: integer("Changes of the collection's reranker or embedding model."),
})

export const EvaluationWatch = define('EvaluationWatch').object('How the service evaluates a collection after changes.', {
  object: constant('evaluation_watch'),
  created_at: UnixSeconds,
  collection_id: string('The id of the collection.'),
  settings: array(EvaluatedSettings, 'The settings that are compared.'),
  min_interval_seconds: integer('The least time between two evaluations, in seconds.'),
  max_fall: nullable(number('By how much a measure may fall before webhooks get the event `evaluation.score_fell`.')),
  key_id: string('The id of the key that pays.'),
  changes: extend([CollectionChanges], 'What has changed since the last evaluation of the watch began.', {}),
  started_at: nullable(integer('When the last evaluation of the watch began, in Unix seconds. Null if there was none.')),
  error: described(
    nullable(Failure),
    'Why the watch has stopped, for example because its key was revoked. Set the watch again to continue. Null while the watch is active.',
  ),
})
export type EvaluationWatch = Static<typeof EvaluationWatch>

export const Evaluation = define('Evaluation').object("An evaluation of a collection's search.", {
  id: string('The id: `evl_…`.'),
  object: constant('evaluation'),
  created_at: UnixSeconds,
  ended_at: nullable(integer('When the evaluation ended, in Unix seconds. Null while it is running.')),
  collection_id: string('The id of the collection.'),
  status: oneOf(['running', 'completed', 'failed'], 'The state.'),
  progress: extend([Progress], 'The progress, in questions.', {}),
  error: described(nullable(Failure), 'Why the evaluation failed. Null unless the status is `failed`.'),
  cost_usd: string('What the searches have cost so far.'),
  changes: Type.Unsafe<unknown>({
    oneOf: [CollectionChanges, Type.Null()],
    description: 'What had changed in the collection, if the service started the evaluation after changes. Null if a caller started it.',
  }),
  comparison: described(
    nullable(EvaluationComparison),
    'The comparison with the newest evaluation before it with the same settings, for one that the service started. Null if there is none.',
  ),
  settings: array(ScoredSettings, 'The scores of each of the settings. They count the questions asked so far.'),
})
export type Evaluation = Static<typeof Evaluation>

export const EvaluationList = define('EvaluationList').as(listOf(Evaluation))

export const EvaluationWithQuestions = define('EvaluationWithQuestions').extend([Evaluation], {
  questions: array(
    object({
      id: string('The id of the gold question, which may have been deleted.'),
      query: string('The question.'),
      expected: array(ExpectedChunk, 'The expected chunks.'),
      ranks: array(
        object({
          combined: array(nullable(integer()), 'The ranks in the result.'),
          words: array(nullable(integer()), 'The ranks by words alone.'),
          meaning: array(nullable(integer()), 'The ranks by meaning alone.'),
        }),
        'The ranks by each of the settings, in their order. Each list has, for each expected chunk, its best rank among the ' +
          'first 50 hits, from 1; null if no hit meets the expectation.',
      ),
    }),
    'The questions asked so far.',
  ),
})

export const GoldQuestionId = string('The id of the gold question, `gq_…`.')
export const EvaluationId = string('The id of the evaluation, `evl_…`.')

export const addGoldQuestions = operation('addGoldQuestions', 'POST', '/v1/collections/{id}/gold-questions', {
  tag: 'Knowledge',
  summary: 'Add gold questions to a collection',
  description:
    "Adds questions whose answers you know, with which you evaluate the collection's search. Adds all of them or, on an error, " +
    'none. A collection has at most 500. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  body: GoldQuestionAddition,
  responses: { 201: { description: 'The added questions, in the order of the request.', json: GoldQuestionList } },
})

export const listGoldQuestions = operation('listGoldQuestions', 'GET', '/v1/collections/{id}/gold-questions', {
  tag: 'Knowledge',
  summary: "List a collection's gold questions",
  description: 'Lists the gold questions of a collection. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: GoldQuestionList } },
})

export const suggestGoldQuestions = operation('suggestGoldQuestions', 'POST', '/v1/collections/{id}/gold-questions/suggestions', {
  tag: 'Knowledge',
  summary: 'Have a model suggest gold questions',
  description:
    'Has a chat model propose gold questions about chunks that are picked at random, with the words of the chunk that ' +
    'answer them. Nothing is stored: read them, and send the `query` and `expected` of those that you agree with to `POST ' +
    '/v1/collections/{id}/gold-questions`. You pay for the model. Requires the scopes `knowledge:read` and `inference`.',
  params: { id: CollectionId },
  body: GoldQuestionSuggesting,
  responses: { 200: { description: 'The proposed questions.', json: GoldQuestionSuggestions } },
})

export const deleteGoldQuestion = operation('deleteGoldQuestion', 'DELETE', '/v1/gold-questions/{id}', {
  tag: 'Knowledge',
  summary: 'Delete a gold question',
  description: 'Deletes a gold question. Evaluations that used it stay. Requires the scope `knowledge:write`.',
  params: { id: GoldQuestionId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const startEvaluation = operation('startEvaluation', 'POST', '/v1/collections/{id}/evaluations', {
  tag: 'Knowledge',
  summary: "Evaluate a collection's search",
  description:
    'Starts an evaluation: the service searches for each gold question, by each of your settings, and counts at which rank the ' +
    'expected chunks come. It runs in the background. You pay for each search. Fails with `in_use` while another evaluation ' +
    'of the collection runs. Requires the scopes `knowledge:read` and `knowledge:write`.',
  params: { id: CollectionId },
  body: EvaluationStart,
  isBodyRequired: false,
  responses: { 201: { description: 'The evaluation.', json: Evaluation } },
})

export const listEvaluations = operation('listEvaluations', 'GET', '/v1/collections/{id}/evaluations', {
  tag: 'Knowledge',
  summary: "List a collection's evaluations",
  description:
    'Lists the evaluations of a collection, without their questions. The service stores the newest 50. Requires the scope ' +
    '`knowledge:read`.',
  params: { id: CollectionId },
  query: { ...Page },
  responses: { 200: { description: 'One page of the list.', json: EvaluationList } },
})

export const getEvaluation = operation('getEvaluation', 'GET', '/v1/evaluations/{id}', {
  tag: 'Knowledge',
  summary: 'Get an evaluation',
  description: 'Gets an evaluation with its scores and with the ranks of each question asked so far. Requires the scope `knowledge:read`.',
  params: { id: EvaluationId },
  query: {
    format: optional(
      oneOf(
        ['json', 'csv'],
        'With `csv`, the response is a table with a line for each expected chunk of each question by each of the settings (RFC ' +
          '4180, with a header line).',
        { default: 'json' },
      ),
    ),
  },
  responses: {
    200: {
      description: 'The evaluation, or the table. Text that a spreadsheet would read as a formula begins with an apostrophe.',
      json: EvaluationWithQuestions,
      content: { 'text/csv': string() },
    },
  },
})

export const deleteEvaluation = operation('deleteEvaluation', 'DELETE', '/v1/evaluations/{id}', {
  tag: 'Knowledge',
  summary: 'Delete an evaluation',
  description:
    'Deletes an evaluation. A running evaluation ends, and you pay for the searches that it has done. Requires the scope ' +
    '`knowledge:write`.',
  params: { id: EvaluationId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})

export const setEvaluationWatch = operation('setEvaluationWatch', 'POST', '/v1/collections/{id}/evaluation-watch', {
  tag: 'Knowledge',
  summary: 'Evaluate a collection after changes',
  description:
    'Has the service evaluate the collection after changes: once documents were added, replaced or deleted, or got a new name or metadata, or ' +
    'the collection has another reranker, and no document of it is being processed. Replaces the settings of an earlier watch. ' +
    'Your key pays for each search, by its rules of that time. Requires the scopes `knowledge:read` and `knowledge:write`.',
  params: { id: CollectionId },
  body: EvaluationWatchSetting,
  isBodyRequired: false,
  responses: { 200: { description: 'The watch.', json: EvaluationWatch } },
})

export const getEvaluationWatch = operation('getEvaluationWatch', 'GET', '/v1/collections/{id}/evaluation-watch', {
  tag: 'Knowledge',
  summary: 'Get how a collection is evaluated after changes',
  description:
    'Gets the watch of a collection, with what has changed since its last evaluation. Fails with `not_found` if the collection ' +
    'is not watched. Requires the scope `knowledge:read`.',
  params: { id: CollectionId },
  responses: { 200: { description: 'The watch.', json: EvaluationWatch } },
})

export const deleteEvaluationWatch = operation('deleteEvaluationWatch', 'DELETE', '/v1/collections/{id}/evaluation-watch', {
  tag: 'Knowledge',
  summary: 'End the evaluation of a collection after changes',
  description: 'Ends the watch of a collection. Its evaluations stay. Requires the scope `knowledge:write`.',
  params: { id: CollectionId },
  responses: { 200: { description: 'The object was deleted.', json: Deletion } },
})
