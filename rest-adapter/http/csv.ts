type Value = string | number | null

/**
 * Writes one line as in RFC 4180. Text that a spreadsheet would treat as a formula gets a leading apostrophe, which
 * makes it plain text (OWASP, CSV injection). Numbers cannot be formulas.
 */
export function csvLine(values: readonly Value[]): string {
  return `${values.map(toField).join(',')}\r\n`
}

function toField(value: Value): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
