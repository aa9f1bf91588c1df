import type { Kind, Migration } from '../../../subgraphs/common/adapters/documents/kinds.ts'

/** A field gets another name. */
export const ADD: Migration = { phase: 'expand', convert: (letter) => ({ ...letter, sheets: letter.pages ?? letter.sheets ?? 1 }) }
export const REMOVE: Migration = { phase: 'contract', convert: ({ pages, ...letter }) => letter }

export const LETTERS: Kind = { name: 'letters', migrations: [ADD, REMOVE] }
