/** Reads, `_entities` included, come from stores, whose slowest answers take seconds. */
const READ_MS = 5_000
/** A change may wait more than once for the journals of a majority, at worst 10 s each time. */
const CHANGE_MS = 30_000
/** Longer than the longest model call or run. Callers have tighter limits of their own. */
export const LONG_MS = 900_000

/** Root fields that wait for a model, a run, the bytes of a file, or a pass over a store. */
export const LONG_FIELDS = [
  'createChatCompletion',
  'createEmbeddings',
  'createRerank',
  'createTranscription',
  'runAgent',
  'runWorkflow',
  'searchCollection',
  'countTokens',
  'embedQuery',
  'embedPassages',
  'rerankPassages',
  'rewriteQuery',
  'suggestQuestions',
  'suggestGoldQuestions',
  'uploadFile',
  'deleteCollection',
  'verifyIndex',
  'verifyLedger',
  'verifyBlobs',
  'rebuildIndex',
] as const

const LONG = new RegExp(`\\b(?:${LONG_FIELDS.join('|')})\\b`)
const CHANGE = /^\s*mutation\b/

/** Whether the operation changes nothing and costs nothing, so that another replica may do it, too. */
export function isRead(query: string): boolean {
  return responseTimeoutMs(query) === READ_MS
}

/** Gives the time in milliseconds within which a subgraph must answer the operation, or count as away. */
export function responseTimeoutMs(query: string): number {
  if (LONG.test(query)) return LONG_MS
  return CHANGE.test(query) ? CHANGE_MS : READ_MS
}
