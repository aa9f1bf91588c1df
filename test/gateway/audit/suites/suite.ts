type Resolvers = Readonly<Record<string, object>>

/** Subgraphs with operations and what a gateway over them must answer. */
export interface Suite {
  /** By name: the subgraph's SDL and resolvers. */
  readonly subgraphs: Readonly<Record<string, { sdl: string; resolvers?: Resolvers }>>
  readonly tests: readonly { query: string; expected: { data?: unknown; errors?: boolean } }[]
}

/** A resolver of references, over records of one type by the name of their key. */
export const byKey =
  <T extends object>(records: readonly T[], key: keyof T) =>
  (reference: T): T | null => {
    const found = records.find((record) => record[key] === reference[key])
    return found ? { ...reference, ...found } : null
  }

/** A resolver that a good plan does not reach. */
export const unreached = (): never => {
  throw new Error('the plan asks the wrong subgraph')
}
