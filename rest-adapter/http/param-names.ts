/** Path of a GraphQL input, or its first segment → its name in REST, if that differs from its snake case. */
export type ParamNames = Readonly<Record<string, string>>

/** Inputs that come in a header, on every route. */
const HEADERS: ParamNames = { idempotencyKey: 'Idempotency-Key' }

/**
 * `input.embeddingModel` → `embedding_model`; `input.request.messages[0].content` → `messages[0].content`. Only the
 * first segment is ours to rename: the rest lies in the caller's data.
 */
export function restParam(param: string, names: ParamNames): string {
  // Arguments that only wrap the caller's input.
  const path = param.replace(/^input\.(?=.)/, '').replace(/^request\.(?=.)/, '')
  if (Object.hasOwn(names, path)) return names[path]!
  if (Object.hasOwn(HEADERS, path)) return HEADERS[path]!
  const [, first = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(path)!
  const own = Object.hasOwn(names, first) ? names[first]! : first.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return own + rest
}
