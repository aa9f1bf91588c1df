/** Variables of an operation, by name. */
export type Variables = Readonly<Record<string, unknown>>

/** A JSON object as a subgraph gave it. Clients choose the names in it, `__proto__` too. */
export type Values = Record<string, unknown>

export function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Sets a value of its own, not one of the prototype. */
export function setValue(target: Values, key: string, value: unknown): void {
  if (key in target && !Object.hasOwn(target, key))
    Object.defineProperty(target, key, { value, configurable: true, enumerable: true, writable: true })
  else target[key] = value
}

/** Adds the values of `source` to `target`, objects within objects and item by item in lists of the same length. */
export function mergeValues(target: Values, source: Values): void {
  for (const key of Object.keys(source)) {
    const value = source[key]
    if (value === undefined) continue
    const known = Object.hasOwn(target, key) ? target[key] : undefined
    if (isValues(value) && typeof known === 'object' && known !== null) mergeValues(known as Values, value)
    else if (Array.isArray(value) && Array.isArray(known) && value.length === known.length) mergeItems(known, value)
    else setValue(target, key, value)
  }
}

function mergeItems(target: unknown[], source: readonly unknown[]): void {
  for (let i = 0; i < source.length; i++) {
    const known = target[i]
    const value = source[i]
    if (isValues(known) && isValues(value)) mergeValues(known, value)
    else target[i] = value
  }
}

/** Objects and lists anew. Everything else, such as a vector of a subgraph in this process, is shared. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T
  if (!isPlain(value)) return value
  const copy: Values = {}
  for (const key of Object.keys(value)) setValue(copy, key, copyOf(value[key]))
  return copy as T
}

function isPlain(value: unknown): value is Values {
  if (!isValues(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
