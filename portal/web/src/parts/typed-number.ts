/** Converts Arabic-Indic or Persian digits and the Arabic decimal sign of a typed number to Latin ones. */
export function toLatinDigits(typed: string): string {
  return typed
    .trim()
    .replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
    .replace(/[۰-۹]/g, (digit) => String(digit.charCodeAt(0) - 0x6f0))
    .replace('٫', '.')
}

/**
 * Returns an amount of US dollars as the schema accepts it, with at most nine decimal places; null: the text is no
 * amount.
 */
export function toAmount(typed: string): string | null {
  const amount = toLatinDigits(typed)
  return /^-?\d{1,7}(\.\d{1,9})?$/.test(amount) ? amount : null
}
