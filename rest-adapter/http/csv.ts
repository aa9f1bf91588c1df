type Value = string | number | null

/**
 * One line of RFC 4180. Text that a spreadsheet would take for a formula begins with an apostrophe, which it then shows as text
 * (OWASP, CSV injection); numbers cannot be formulas.
 */
export function csvLine(values: readonly Value[]): string {
  return `${values.map(fieldOf).join(',')}\r\n`
}

function fieldOf(value: Value): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
