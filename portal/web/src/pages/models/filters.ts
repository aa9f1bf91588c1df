import { readOne, readText } from '../../data/search-params.ts'

/** The state of the list in its address, so that a link shows the same. */
export interface Filters {
  readonly q?: string
  readonly kind?: (typeof KINDS)[number]
  readonly residency?: (typeof RESIDENCIES)[number]
  readonly vendor?: string
  readonly can?: readonly Ability[]
  /** The model whose details are open. */
  readonly model?: string
}

export const KINDS = ['CHAT', 'EMBEDDING', 'TRANSCRIPTION', 'RERANK'] as const
export const RESIDENCIES = ['LOCAL', 'REGIONAL', 'CLOUD'] as const
export const ABILITIES = ['supportsVision', 'supportsTools', 'supportsResponseSchema', 'supportsReasoning'] as const
type Ability = (typeof ABILITIES)[number]

export function readFilters(search: Readonly<Record<string, unknown>>): Filters {
  const { can } = search
  const abilities = Array.isArray(can) ? ABILITIES.filter((each) => can.includes(each)) : []
  return {
    q: readText(search.q),
    kind: readOne(KINDS, search.kind),
    residency: readOne(RESIDENCIES, search.residency),
    vendor: readText(search.vendor),
    can: abilities.length > 0 ? abilities : undefined,
    model: readText(search.model),
  }
}
