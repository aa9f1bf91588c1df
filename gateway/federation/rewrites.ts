import type { FetchDataRewrite } from '@apollo/query-planner'
import type { SupergraphTypes } from './supergraph-types.ts'
import { isValues, setValue, type Values } from './values.ts'

const FRAGMENT = '... on '

/**
 * Changes what the planner wants changed, in what a subgraph gets or gave: names of types for `@interfaceObject`, and
 * names under which one operation asks for the same field twice. The last part of a path is a field.
 */
export function applyRewrites(types: SupergraphTypes, rewrites: readonly FetchDataRewrite[] | undefined, value: unknown): void {
  for (const rewrite of rewrites ?? []) {
    const field = rewrite.path.at(-1)
    if (field !== undefined) rewriteAt(types, rewrite, field, value, 0)
  }
}

/** `depth`: how many parts of the path lead to `value`. */
function rewriteAt(types: SupergraphTypes, rewrite: FetchDataRewrite, field: string, value: unknown, depth: number): void {
  if (Array.isArray(value)) {
    for (const item of value) rewriteAt(types, rewrite, field, item, depth)
    return
  }
  if (!isValues(value)) return
  const part = rewrite.path[depth]!
  if (depth === rewrite.path.length - 1) rewriteField(rewrite, field, value)
  else if (!part.startsWith(FRAGMENT)) rewriteAt(types, rewrite, field, Object.hasOwn(value, part) ? value[part] : undefined, depth + 1)
  else if (isOfType(types, value, part.slice(FRAGMENT.length), true)) rewriteAt(types, rewrite, field, value, depth + 1)
}

function rewriteField(rewrite: FetchDataRewrite, field: string, value: Values): void {
  if (rewrite.kind === 'ValueSetter') {
    setValue(value, field, rewrite.setValueTo)
  } else if (Object.hasOwn(value, field) && value[field]) {
    setValue(value, rewrite.renameKeyTo, value[field])
    value[field] = undefined
  }
}

/** Whether a value is of the type, by its `__typename`. `otherwise`: when it has none. */
export function isOfType(types: SupergraphTypes, { __typename: name }: Values, condition: string, otherwise = false): boolean {
  return name ? types.isSubType(String(name), condition) : otherwise
}
