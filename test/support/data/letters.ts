import type { Kind, Migration } from '../../../subgraphs/common/adapters/documents/kinds.ts'

/** Letters get the number of their sheets beside that of their pages. */
export const ADD: Migration = { isAdditive: true, convert: (letter) => ({ ...letter, sheets: letter.pages ?? letter.sheets ?? 1 }) }
/** The number of pages goes. */
export const REMOVE: Migration = { isAdditive: false, convert: ({ pages, ...letter }) => letter }

export const letters = (...migrations: readonly Migration[]): readonly Kind[] => [{ name: 'letters', migrations }]
