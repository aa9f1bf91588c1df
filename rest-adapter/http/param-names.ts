/** The REST name by the path of a GraphQL input or its first segment, if that name differs from the snake case. */
export type ParamNames = Readonly<Record<string, string>>

/** Inputs that come in a header, on every route. */
const HEADERS: ParamNames = { idempotencyKey: 'Idempotency-Key' }

/**
 * Returns the REST name of an input: `input.embeddingModel` → `embedding_model`; `input.request.messages[0].content` →
 * `messages[0].content`. Only the first segment is ours to rename: the rest is the caller's data.
 */
export function restParam(param: string, names: ParamNames): string {
  // `input` and `request` only wrap the caller's input.
  const path = param.replace(/^input\.(?=.)/, '').replace(/^request\.(?=.)/, '')
  if (Object.hasOwn(names, path)) return names[path]!
  if (Object.hasOwn(HEADERS, path)) return HEADERS[path]!
  const [, first = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(path)!
  const own = Object.hasOwn(names, first) ? names[first]! : first.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return own + rest
}
