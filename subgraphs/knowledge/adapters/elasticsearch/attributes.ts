import type { FilterValue } from '../../domain/search/search-filter.ts'

/**
 * Attributes as terms of one keyword field: `"file_name"sa b.pdf`. A term is the key in JSON (so that no key runs into its value), one
 * letter for the value's type, and the value in an order that bytes keep. So any key can be filtered, a number is never the text of it,
 * ranges are ranges of terms, and a strict mapping holds them all.
 */
export function attributeTerm(field: string, value: FilterValue): string {
  return typePrefix(field, value) + (typeof value === 'number' ? sortable(value) : String(value))
}

/** The end, itself outside, of all terms of this field and this value's type. */
export function endOfType(field: string, value: FilterValue): string {
  const prefix = typePrefix(field, value)
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
}

/** The start of all terms of this field and this value's type. */
export function typePrefix(field: string, value: FilterValue): string {
  return JSON.stringify(field) + (typeof value)[0]
}

/** 16 hexadecimal digits that sort as the numbers do: positive ones get their sign bit set, negative ones all bits turned round. */
function sortable(value: number): string {
  const view = new DataView(new ArrayBuffer(8))
  // Minus zero and zero are one number.
  view.setFloat64(0, value + 0)
  const bits = view.getBigUint64(0)
  const ordered = bits >> 63n ? ~bits & 0xffff_ffff_ffff_ffffn : bits | (1n << 63n)
  return ordered.toString(16).padStart(16, '0')
}
