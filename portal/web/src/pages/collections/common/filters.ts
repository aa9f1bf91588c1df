import { readOne, readText } from '../../../data/search-params.ts'

type Search = Readonly<Record<string, unknown>>

const whole = (value: unknown, most: number) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most ? value : undefined

export const LIST_ORDERS = ['newest', 'oldest', 'name', 'nameDown'] as const
type ListOrder = (typeof LIST_ORDERS)[number]

/** The schema's names of the orders. */
export const SORTS = {
  newest: { sortBy: 'CREATED_AT', order: 'DESC' },
  oldest: { sortBy: 'CREATED_AT', order: 'ASC' },
  name: { sortBy: 'NAME', order: 'ASC' },
  nameDown: { sortBy: 'NAME', order: 'DESC' },
} as const satisfies Readonly<Record<ListOrder, object>>

/** The state of the list of collections in its address. */
export interface ListFilters {
  readonly q?: string
  readonly sort?: ListOrder
  /** A dialog that is open. */
  readonly open?: 'new'
}

export function readListFilters(search: Search): ListFilters {
  return { q: readText(search.q), sort: readOne(LIST_ORDERS, search.sort), open: readOne(['new'] as const, search.open) }
}

export const TABS = ['documents', 'web', 'search', 'evaluation', 'settings'] as const
export const STATUSES = ['QUEUED', 'PROCESSING', 'READY', 'FAILED'] as const
export const MODES = ['HYBRID', 'VECTOR', 'LEXICAL'] as const
export const DOCUMENT_LANGUAGES = ['ar', 'en'] as const

/** The state of a collection's page in its address: the tab, the filters of its documents, and the search. */
export interface CollectionFilters {
  readonly tab?: (typeof TABS)[number]
  readonly name?: string
  readonly status?: (typeof STATUSES)[number]
  readonly sort?: ListOrder
  readonly query?: string
  readonly mode?: (typeof MODES)[number]
  readonly language?: (typeof DOCUMENT_LANGUAGES)[number]
  readonly min?: number
  readonly limit?: number
  readonly expand?: number
  readonly group?: boolean
  /** A part of the file's name. */
  readonly file?: string
  /** A field of the metadata, and its value. */
  readonly field?: string
  readonly value?: string
  readonly rerank?: string
  /** The open evaluation, and the one it is compared with. */
  readonly evaluation?: string
  readonly against?: string
}

export function readCollectionFilters(search: Search): CollectionFilters {
  const { min } = search
  return {
    tab: readOne(TABS, search.tab),
    name: readText(search.name),
    status: readOne(STATUSES, search.status),
    sort: readOne(LIST_ORDERS, search.sort),
    query: readText(search.query),
    mode: readOne(MODES, search.mode),
    language: readOne(DOCUMENT_LANGUAGES, search.language),
    min: typeof min === 'number' && min > 0 && min <= 1 ? min : undefined,
    limit: whole(search.limit, 50),
    expand: whole(search.expand, 3),
    group: search.group === true ? true : undefined,
    file: readText(search.file),
    field: readText(search.field),
    value: typeof search.value === 'boolean' ? String(search.value) : readText(search.value),
    rerank: readText(search.rerank),
    evaluation: readText(search.evaluation),
    against: readText(search.against),
  }
}

export const DOCUMENT_VIEWS = ['passages', 'text', 'versions'] as const

/** The state of a document's page in its address. `passage` comes from a citation. */
interface DocumentView {
  readonly view?: (typeof DOCUMENT_VIEWS)[number]
  readonly passage?: string
  readonly page?: number
}

export function readDocumentView(search: Search): DocumentView {
  return { view: readOne(DOCUMENT_VIEWS, search.view), passage: readText(search.passage), page: whole(search.page, 1_000_000) }
}
