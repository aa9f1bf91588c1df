/** The greatest number of GraphQL's 32-bit `Int`. */
export const MAX_INT = 2 ** 31 - 1
