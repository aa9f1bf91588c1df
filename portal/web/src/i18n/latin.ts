/** A typed number in Latin digits: it may be typed in Arabic-Indic ones, and with their decimal sign. */
export function latin(typed: string): string {
  return typed
    .trim()
    .replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
    .replace(/[۰-۹]/g, (digit) => String(digit.charCodeAt(0) - 0x6f0))
    .replace('٫', '.')
}
