/** Numbers may be typed in Arabic-Indic or Persian digits, and with the Arabic decimal sign. */
export function toLatinDigits(typed: string): string {
  return typed
    .trim()
    .replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
    .replace(/[۰-۹]/g, (digit) => String(digit.charCodeAt(0) - 0x6f0))
    .replace('٫', '.')
}

/** An amount of US dollars as the schema takes it, at most nine places; null: what was typed is none. */
export function toAmount(typed: string): string | null {
  const amount = toLatinDigits(typed)
  return /^-?\d{1,7}(\.\d{1,9})?$/.test(amount) ? amount : null
}
