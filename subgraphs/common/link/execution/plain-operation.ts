import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'

/** Fields of a compiled operation, each as often as fragments name it. Their functions take up to 1 KB each. */
const MAX_FIELDS = 1_000

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

/** An operation that selects the same fields whatever its variables are, and none of the schema itself. */
export interface PlainOperation {
  readonly operation: OperationDefinitionNode
  readonly fragments: Fragments
  /** Fields of the answer's objects, each as often as fragments name it. */
  readonly fieldCount: number
}

/** One field of the answer, wherever the operation names it. */
export type FieldNodes = readonly [FieldNode, ...FieldNode[]]

/** Null: the valid document has several operations, one that is not plain, or one of more than 1,000 fields. */
export function plainOperation({ definitions }: DocumentNode): PlainOperation | null {
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
  const [operation] = operations
  if (!operation || operations.length > 1) return null
  if (![...operations, ...fragments].every(({ directives, selectionSet }) => !directives?.length && isPlain(selectionSet))) return null
  const named = new Map(fragments.map((fragment) => [fragment.name.value, fragment]))
  const fieldCount = countFields(operation.selectionSet, named)
  return fieldCount > MAX_FIELDS ? null : { operation, fragments: named, fieldCount }
}

/** Stops soon after `MAX_FIELDS`: fragments in fragments can name one field a million times. */
function countFields(whole: SelectionSetNode, fragments: Fragments): number {
  let fields = 0
  const count = ({ selections }: SelectionSetNode) => {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) fields++
      if (fields > MAX_FIELDS) return
      const below = selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection
      if (below?.selectionSet) count(below.selectionSet)
    }
  }
  count(whole)
  return fields
}

function isPlain({ selections }: SelectionSetNode): boolean {
  return selections.every((selection) => {
    if (selection.directives?.length) return false
    if (selection.kind === Kind.FRAGMENT_SPREAD) return true
    if (selection.kind === Kind.FIELD) {
      const name = selection.name.value
      // As a key of an object, `__proto__` is not a property.
      if (name === '__schema' || name === '__type' || selection.alias?.value === '__proto__') return false
    }
    return !selection.selectionSet || isPlain(selection.selectionSet)
  })
}

/** The fields that the selections take of an object, in the order of the answer. */
export function collectFields(
  schema: GraphQLSchema,
  fragments: Fragments,
  type: GraphQLObjectType,
  selectionSets: readonly SelectionSetNode[],
): ReadonlyMap<string, FieldNodes> {
  const fields = new Map<string, [FieldNode, ...FieldNode[]]>()
  const spread = new Set<string>()
  const isOf = (condition: NamedTypeNode | undefined) => {
    if (!condition || condition.name.value === type.name) return true
    const other = schema.getType(condition.name.value)
    return isAbstractType(other) && schema.isSubType(other, type)
  }
  const collect = ({ selections }: SelectionSetNode) => {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value
        const known = fields.get(name)
        if (known) known.push(selection)
        else fields.set(name, [selection])
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        if (isOf(selection.typeCondition)) collect(selection.selectionSet)
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value)
        const { typeCondition, selectionSet } = fragments.get(selection.name.value)!
        if (isOf(typeCondition)) collect(selectionSet)
      }
    }
  }
  for (const each of selectionSets) collect(each)
  return fields
}
