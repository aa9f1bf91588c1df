/** A GraphQL input's path, or its first segment → what REST calls it, where that is not the same in snake case. */
export type ParamNames = Readonly<Record<string, string>>

/** What a header carries, on whichever route. */
const HEADERS: ParamNames = { idempotencyKey: 'Idempotency-Key' }

/**
 * `input.embeddingModel` → `embedding_model`; `input.request.messages[0].content` → `messages[0].content`. Only our own first segment
 * changes: what follows it lies inside the caller's data.
 */
export function restParam(param: string, names: ParamNames): string {
  // Arguments of operations that only wrap the caller's input.
  const path = param.replace(/^input\.(?=.)/, '').replace(/^request\.(?=.)/, '')
  if (Object.hasOwn(names, path)) return names[path]!
  if (Object.hasOwn(HEADERS, path)) return HEADERS[path]!
  const [, first = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(path)!
  const own = Object.hasOwn(names, first) ? names[first]! : first.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return own + rest
}
