/** The subgraphs that have objects of their own, beside inference. */
export type Owner = 'billing' | 'knowledge'

export interface NodeReference {
  /** The name of the type in the contract. */
  readonly type: string
  readonly id: string
}

/** Objects of other subgraphs, as the caller of one operation may read them. */
export interface OwnedNodes {
  /**
   * Whether the caller finds the object. False also if it belongs to another organization.
   * @throws {KisError} the owner cannot say
   */
  has(owner: Owner, reference: NodeReference): Promise<boolean>
}
