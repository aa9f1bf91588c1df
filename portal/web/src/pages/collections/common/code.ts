import { codeOf } from '../../../parts/code.ts'

const FALLBACK = 'collection'
const RANDOM_DIGITS = 5

/** What the service takes as a code. */
export const CODE = /^[a-z0-9][\w.-]{0,63}$/i

/**
 * A code for a name: letters, digits and `-`. A name without Latin letters, such as an Arabic one, gets a code of its
 * own.
 */
export function toCode(name: string, random: () => number = Math.random): string {
  const code = codeOf(name)
  if (/[a-z]/.test(code) || name.trim() === '') return code
  const digits = Math.floor(random() * 36 ** RANDOM_DIGITS)
    .toString(36)
    .padStart(RANDOM_DIGITS, '0')
  return `${FALLBACK}-${digits}`
}
