const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const

/** Sizes below this are written in bytes, unless one decimal place is exact. */
const FEW = 10 * 1024

/** Formats bytes for messages, in the binary units of the plans: `512 MiB`, `33.4 MiB`, `2000 bytes`. */
export function sizeText(bytes: number): string {
  if (bytes < 1024 || (bytes < FEW && (bytes * 10) % 1024 > 0)) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  const rounded = (power: number) => Math.round((bytes / 1024 ** power) * 10) / 10
  let power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length)
  if (rounded(power) === 1024 && power < UNITS.length) power++
  return `${rounded(power)} ${UNITS[power - 1]}`
}

/** Formats the sizes of one sentence. Where rounding hides that they differ, all are in bytes. */
export function sizeTexts(...sizes: readonly number[]): string[] {
  const texts = sizes.map(sizeText)
  const isClear = new Set(texts).size === new Set(sizes).size
  return isClear ? texts : sizes.map((bytes) => (bytes === 1 ? '1 byte' : `${bytes} bytes`))
}
