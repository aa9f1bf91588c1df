/** The other subgraphs that own objects. */
export type Owner = 'billing' | 'knowledge'

/** Identifies an object of another subgraph. */
export interface NodeReference {
  /** The name of the GraphQL type. */
  readonly type: string
  readonly id: string
}

/** Objects of other subgraphs, as the caller of one operation may read them. */
export interface OwnedNodes {
  /**
   * Whether the caller can read the object. False also if the object belongs to another organization.
   * @throws {KisError} the owner cannot tell
   */
  has(owner: Owner, reference: NodeReference): Promise<boolean>
}
