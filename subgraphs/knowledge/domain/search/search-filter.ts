/**
 * A validated filter over `file_name`, `media_type`, `language`, `document_id`, `created_at` (ms), `page` and
 * `metadata.<field>`.
 */
export type SearchFilter =
  | { readonly op: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; readonly field: string; readonly value: FilterValue }
  /** The field's value contains `value`. ASCII letters match regardless of case. */
  | { readonly op: 'contains'; readonly field: string; readonly value: string }
  | { readonly op: 'in'; readonly field: string; readonly values: readonly FilterValue[] }
  | { readonly op: 'and' | 'or'; readonly filters: readonly SearchFilter[] }
  | { readonly op: 'not'; readonly filter: SearchFilter }

export type FilterValue = string | number | boolean
