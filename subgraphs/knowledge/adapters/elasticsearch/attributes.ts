import type { FilterValue } from '../../domain/search/search-filter.ts'

/**
 * Encodes attributes as terms of one keyword field: `"file_name"sa b.pdf`. A term is the key in JSON (which marks its
 * end), one letter for the type of the value, and the value in a form whose bytes sort correctly. Thus any key can be
 * filtered, a number never equals its text, ranges are ranges of terms, and a strict mapping covers all keys.
 */
export function attributeTerm(field: string, value: FilterValue): string {
  return typePrefix(field, value) + (typeof value === 'number' ? sortable(value) : String(value))
}

/** Returns the exclusive end of all terms of this field and this type of value. */
export function endOfType(field: string, value: FilterValue): string {
  const prefix = typePrefix(field, value)
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
}

/** Returns the common prefix of all terms of this field and this type of value. */
export function typePrefix(field: string, value: FilterValue): string {
  return JSON.stringify(field) + (typeof value)[0]
}

/**
 * Returns 16 hexadecimal digits that sort like the numbers: positive numbers get their sign bit set, negative ones all
 * bits inverted.
 */
function sortable(value: number): string {
  const view = new DataView(new ArrayBuffer(8))
  // Minus zero equals zero.
  view.setFloat64(0, value + 0)
  const bits = view.getBigUint64(0)
  const ordered = bits >> 63n ? ~bits & 0xffff_ffff_ffff_ffffn : bits | (1n << 63n)
  return ordered.toString(16).padStart(16, '0')
}
