import { MODES } from '../common/filters.ts'

export const MAX_SETTINGS = 4

/** One of the compared settings. */
export interface SettingsDraft {
  readonly key: number
  readonly mode: (typeof MODES)[number]
  /** `default`: the collection's. `none`, or the id of a model. */
  readonly reranker: string
  /** Values that were set elsewhere and have no field here. They stay. */
  readonly own?: { readonly label: string; readonly filter: unknown; readonly lexicalWeight: number }
}

/** Separates the mode and the reranker in a label. */
const PLUS = ' + '
const NO_RERANKER = '—'

/** Returns the input for the service. The label identifies the settings again when scores are shown. */
export function inputOf({ mode, reranker, own }: SettingsDraft) {
  const common = own && { filter: own.filter, lexicalWeight: own.lexicalWeight, ...(readLabel(own.label) ? {} : { label: own.label }) }
  if (reranker === 'default') return { mode, ...common }
  const isNone = reranker === 'none'
  const label = `${mode.toLowerCase()}${PLUS}${isNone ? NO_RERANKER : reranker}`.slice(0, 100)
  return { mode, label, rerankModel: isNone ? null : reranker, ...common }
}

/** Parses a label of `inputOf`, or of a mode. Null: somebody wrote the label. */
export function readLabel(label: string): { readonly mode: (typeof MODES)[number]; readonly reranker: string | null } | null {
  const [first = '', ...rest] = label.split(PLUS)
  const mode = MODES.find((each) => each.toLowerCase() === first.toLowerCase())
  if (!mode) return null
  const reranker = rest.join(PLUS)
  return { mode, reranker: reranker === '' ? null : reranker === NO_RERANKER ? 'none' : reranker }
}

/** Whether two settings are the same, which would only cost twice. */
export function isRepeated(drafts: readonly SettingsDraft[]): boolean {
  return new Set(drafts.map(({ mode, reranker }) => `${mode} ${reranker}`)).size < drafts.length
}
