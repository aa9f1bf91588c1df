/** What is read, `_entities` included, comes from stores, whose own slowest answers take seconds. */
const READ_MS = 5_000
/** A change waits for the journals of a majority, 10 s at worst, more than once. */
const CHANGE_MS = 30_000
/** Longer than the longest model call or run that is waited for; whoever calls has a tighter limit of its own. */
export const LONG_MS = 900_000

/** Fields of the root types that wait for a model, for a run, for a file's bytes, or for a pass over a store. */
export const LONG_FIELDS = [
  'createChatCompletion',
  'createEmbeddings',
  'createTranscription',
  'runAgent',
  'runWorkflow',
  'searchCollection',
  'countTokens',
  'embedQuery',
  'embedPassages',
  'uploadFile',
  'deleteCollection',
  'verifyIndex',
  'verifyLedger',
  'verifyBlobs',
  'rebuildIndex',
] as const

const LONG = new RegExp(`\\b(?:${LONG_FIELDS.join('|')})\\b`)
const CHANGE = /^\s*mutation\b/

/** Within how many milliseconds a subgraph answers the operation, or counts as away. */
export function answerTimeMs(query: string): number {
  if (LONG.test(query)) return LONG_MS
  return CHANGE.test(query) ? CHANGE_MS : READ_MS
}
