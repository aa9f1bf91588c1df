import { MODES } from '../common/filters.ts'

export const MAX_SETTINGS = 4

/** One way of searching to compare. */
export interface SettingsDraft {
  readonly key: number
  readonly mode: (typeof MODES)[number]
  /** `default`: the collection's. `none`, or the id of a model. */
  readonly reranker: string
  /** What was set elsewhere and has no field here. It stays. */
  readonly own?: { readonly label: string; readonly filter: unknown; readonly lexicalWeight: number }
}

/** Between the mode and the reranker of a label. */
const PLUS = ' + '
const NO_RERANKER = '—'

/** What the service takes. The label names the way again when scores are shown. */
export function inputOf({ mode, reranker, own }: SettingsDraft) {
  const common = own && { filter: own.filter, lexicalWeight: own.lexicalWeight, ...(readLabel(own.label) ? {} : { label: own.label }) }
  if (reranker === 'default') return { mode, ...common }
  const isNone = reranker === 'none'
  const label = `${mode.toLowerCase()}${PLUS}${isNone ? NO_RERANKER : reranker}`.slice(0, 100)
  return { mode, label, rerankModel: isNone ? null : reranker, ...common }
}

/** What a label of `inputOf`, or of a mode, names. Null: it is somebody's own. */
export function readLabel(label: string): { readonly mode: (typeof MODES)[number]; readonly reranker: string | null } | null {
  const [first = '', ...rest] = label.split(PLUS)
  const mode = MODES.find((each) => each.toLowerCase() === first.toLowerCase())
  if (!mode) return null
  const reranker = rest.join(PLUS)
  return { mode, reranker: reranker === '' ? null : reranker === NO_RERANKER ? 'none' : reranker }
}

/** Two ways that are the same would only cost twice. */
export function isRepeated(drafts: readonly SettingsDraft[]): boolean {
  return new Set(drafts.map(({ mode, reranker }) => `${mode} ${reranker}`)).size < drafts.length
}
