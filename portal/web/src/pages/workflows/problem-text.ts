import { useFormats, useText } from '../../i18n/text.tsx'
import type { Problem } from './rules/problems.ts'

const NUMBERS: ReadonlySet<string> = new Set(['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum'])
/** Unicode controls around program names, which are left to right, also in a right-to-left line. */
const [ISOLATE, END] = ['\u2066', '\u2069']

/** Describes a violation of a schema in a sentence. */
export function useProblemText(): (problem: Problem) => string {
  const text = useText()
  const { number } = useFormats()
  return ({ keyword, wanted }) => {
    const isNumber = NUMBERS.has(keyword) && wanted !== '' && Number.isFinite(Number(wanted))
    const shown = isNumber ? number(Number(wanted)) : `${ISOLATE}${wanted}${END}`
    return text(`workflows.wrong.${keyword}`, { wanted: shown, count: isNumber ? Number(wanted) : 0 })
  }
}
