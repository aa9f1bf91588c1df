import type { FetchNode, QueryPlan } from '@apollo/query-planner'
import {
  type DocumentNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isObjectType,
  isScalarType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
} from 'graphql'

/** Finds the operations that one subgraph answers as clients see it, so that nothing is left to execute here. */
export class PassThrough {
  /** Enums with values that clients do not see. */
  readonly #hidingEnums: ReadonlySet<string>
  readonly #fetches = new WeakMap<QueryPlan, FetchNode | null>()

  constructor({ definitions }: DocumentNode) {
    this.#hidingEnums = new Set(
      definitions.flatMap((type) =>
        type.kind === Kind.ENUM_TYPE_DEFINITION &&
        type.values?.some(({ directives }) => directives?.some(({ name }) => name.value === 'inaccessible'))
          ? [type.name.value]
          : [],
      ),
    )
  }

  /** The only fetch of the operation's plan, if its result is that of the operation; else null. `schema`: what clients see. */
  fetchOf(plan: QueryPlan, operation: OperationDefinitionNode, schema: GraphQLSchema): FetchNode | null {
    const known = this.#fetches.get(plan)
    if (known !== undefined) return known
    const fetch = this.#find(plan, operation, schema)
    this.#fetches.set(plan, fetch)
    return fetch
  }

  #find({ node }: QueryPlan, { operation, selectionSet }: OperationDefinitionNode, schema: GraphQLSchema): FetchNode | null {
    const fetch = node?.kind === 'Subscription' && !node.rest ? node.primary : node
    if (fetch?.kind !== 'Fetch' || fetch.inputRewrites?.length || fetch.outputRewrites?.length) return null
    const [fetched] = parse(fetch.operation, { noLocation: true }).definitions as [OperationDefinitionNode]
    return this.#isSame(selectionSet, fetched.selectionSet, schema.getRootType(operation)!) ? fetch : null
  }

  /**
   * True when both have the same fields in the same order under the same names, without fragments, `@include` or
   * `@skip`, and with only object types and enums that hide nothing.
   */
  #isSame(selected: SelectionSetNode, fetched: SelectionSetNode, parent: GraphQLObjectType): boolean {
    return (
      selected.selections.length === fetched.selections.length &&
      selected.selections.every((field, index) => {
        const other = fetched.selections[index]
        if (field.kind !== Kind.FIELD || other?.kind !== Kind.FIELD) return false
        if (field.directives?.length || other.directives?.length) return false
        if (field.name.value !== other.name.value || field.alias?.value !== other.alias?.value) return false
        if (field.name.value === '__typename') return true
        const definition = parent.getFields()[field.name.value]
        if (!definition) return false
        const type = getNamedType(definition.type)
        if (isScalarType(type)) return true
        if (isEnumType(type)) return !this.#hidingEnums.has(type.name)
        return (
          isObjectType(type) &&
          field.selectionSet !== undefined &&
          other.selectionSet !== undefined &&
          this.#isSame(field.selectionSet, other.selectionSet, type)
        )
      })
    )
  }
}
