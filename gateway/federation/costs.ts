import {
  type ArgumentNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  GraphQLIncludeDirective,
  type GraphQLNamedType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  valueFromASTUntyped,
  visit,
} from 'graphql'
import type { Prepared } from '../documents.ts'
import type { Variables } from '../variables.ts'

/** Items of a list of objects for which the schema gives no size. `compose.ts` refuses such lists in our own schema. */
const ASSUMED_SIZE = 10
/** Costs of one operation that are kept. Pages have one size or two. */
const MAX_CACHED = 16

type Operation = Pick<Prepared, 'document' | 'operation'>

/** The arguments of a field's `@listSize`. */
interface ListSize {
  readonly assumedSize?: number
  readonly slicingArguments?: readonly string[]
  readonly sizedFields?: readonly string[]
}

/** The most that one operation may return. */
export interface Cost {
  readonly nodes: number
  /** The root field that returns most of them, under its name in the answer, and how many. */
  readonly mostExpensive: { readonly name: string; readonly nodes: number }
}

/** The costs of one operation, and the variables that they depend on. */
interface Counted {
  readonly names: readonly string[]
  /** By what `sizeKey` says of these. */
  readonly costs: Map<string, Cost>
}

/** The fields that are merged into one field of the answer. */
interface FieldGroup {
  readonly type: GraphQLNamedType
  readonly nodes: FieldNode[]
}

/**
 * Counts the most nodes that an operation may return. It reads the `@listSize` and `@cost` of the supergraph (IBM's
 * cost specification, as Apollo's routers apply it): each object of the answer is one node, a list has as many as were
 * asked for, and a weight replaces the count where the schema gives one.
 */
export class Costs {
  readonly #lists = new Map<string, ListSize>()
  /** By type name, or by `Type.field`. */
  readonly #weights = new Map<string, number>()
  /** Arguments that say how long a list is. */
  readonly #sizes = new Set([IDS])
  readonly #counted = new WeakMap<OperationDefinitionNode, Counted>()

  constructor(supergraph: DocumentNode) {
    for (const definition of supergraph.definitions) {
      if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION && definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue
      this.#note(definition.name.value, definition.directives)
      for (const { name, directives } of definition.fields ?? []) this.#note(`${definition.name.value}.${name.value}`, directives)
    }
  }

  /** The variables must be coerced. */
  of(prepared: Operation, schema: GraphQLSchema, variables: Variables): Cost {
    const { names, costs } = this.#countedOf(prepared)
    const key = names.map((name) => sizeKey(variables[name])).join()
    const known = costs.get(key)
    if (known) return known
    const cost = this.#count(prepared, schema, variables)
    if (costs.size < MAX_CACHED) costs.set(key, cost)
    return cost
  }

  #countedOf({ document, operation }: Operation): Counted {
    const known = this.#counted.get(operation)
    if (known) return known
    const names = new Set<string>()
    const noteVariables = (node: DirectiveNode | ArgumentNode): void => {
      visit(node, { Variable: ({ name }) => void names.add(name.value) })
    }
    visit(document, {
      Directive: noteVariables,
      Argument: (argument) => {
        if (this.#sizes.has(argument.name.value)) noteVariables(argument)
      },
    })
    const counted = { names: [...names], costs: new Map<string, Cost>() }
    this.#counted.set(operation, counted)
    return counted
  }

  #count({ document, operation }: Operation, schema: GraphQLSchema, variables: Variables): Cost {
    const fragments = new Map(
      document.definitions.flatMap((each) => (each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each] as const] : [])),
    )
    const root = schema.getRootType(operation.operation)!

    /** Collects the fields of a selection by their names in the answer, as execution merges them for a value of the type. */
    const collect = (
      { selections }: SelectionSetNode,
      type: GraphQLNamedType,
      groups: Map<string, FieldGroup>,
      spread: Set<string>,
    ): void => {
      for (const selection of selections) {
        if (!isIncluded(selection, variables)) continue
        if (selection.kind === Kind.FIELD) {
          const key = selection.alias?.value ?? selection.name.value
          const group = groups.get(key)
          if (group) group.nodes.push(selection)
          else groups.set(key, { type, nodes: [selection] })
          continue
        }
        const name = selection.kind === Kind.FRAGMENT_SPREAD ? selection.name.value : undefined
        if (name !== undefined && spread.has(name)) continue
        if (name !== undefined) spread.add(name)
        const { typeCondition, selectionSet } = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value)!
        const condition = typeCondition ? schema.getType(typeCondition.name.value) : type
        if (condition === type || (isAbstractType(condition) && isObjectType(type) && schema.isSubType(condition, type)))
          collect(selectionSet, type, groups, spread)
      }
    }

    /**
     * Counts the nodes below one object. `sized` gives the size of those of its lists that a slicing argument of the
     * parent limits.
     */
    const sumNodes = (groups: Map<string, FieldGroup>, sized: Sized | undefined, noted?: (name: string, nodes: number) => void): number => {
      let sum = 0
      for (const [key, { type, nodes }] of groups) {
        const nodesHere = nodesOfField(type, nodes, sized)
        noted?.(key, nodesHere)
        sum += nodesHere
      }
      return sum
    }

    const nodesOfField = (parent: GraphQLNamedType, nodes: readonly FieldNode[], sized: Sized | undefined): number => {
      const name = nodes[0]!.name.value
      const field = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined
      // A field of the introspection: its answer is as long as the schema.
      if (!field) return 0
      const coordinate = `${parent.name}.${name}`
      const type = getNamedType(field.type)
      const weight = this.#weights.get(coordinate) ?? this.#weights.get(type.name) ?? (isCompositeType(type) ? 1 : 0)
      if (!isCompositeType(type)) return weight
      const list = this.#lists.get(coordinate)
      const size = list && estimateSize(list, field, nodes[0]!, variables)
      const count = isListType(getNullableType(field.type)) ? (sized?.fields.includes(name) ? sized.size : (size ?? ASSUMED_SIZE)) : 1
      const slicing = list?.sizedFields && { fields: list.sizedFields, size: size ?? ASSUMED_SIZE }
      // A value has one of the types: the dearest counts.
      let mostExpensive = 0
      for (const runtime of isAbstractType(type) ? schema.getPossibleTypes(type) : [type]) {
        const below = new Map<string, FieldGroup>()
        const spread = new Set<string>()
        for (const { selectionSet } of nodes) if (selectionSet) collect(selectionSet, runtime, below, spread)
        mostExpensive = Math.max(mostExpensive, sumNodes(below, slicing))
      }
      return count * (weight + mostExpensive)
    }

    const groups = new Map<string, FieldGroup>()
    collect(operation.selectionSet, root, groups, new Set())
    let mostExpensive = { name: '', nodes: 0 }
    const nodes = sumNodes(groups, undefined, (name, those) => {
      if (those > mostExpensive.nodes) mostExpensive = { name, nodes: those }
    })
    return { nodes, mostExpensive }
  }

  #note(coordinate: string, directives: readonly DirectiveNode[] = []): void {
    for (const { name, arguments: args = [] } of directives) {
      const values = Object.fromEntries(args.map((argument) => [argument.name.value, valueFromASTUntyped(argument.value)]))
      if (name.value === 'cost') this.#weights.set(coordinate, values.weight as number)
      if (name.value !== 'listSize') continue
      this.#lists.set(coordinate, values)
      for (const argument of (values as ListSize).slicingArguments ?? []) this.#sizes.add(argument)
    }
  }
}

interface Sized {
  readonly fields: readonly string[]
  readonly size: number
}

/** All that a cost depends on of a variable: a number, a condition, or how many items a list has. */
function sizeKey(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return `[${value.length}]`
  return value === undefined ? '' : value === null ? 'null' : '*'
}

/** Of a field that gives the items with the ids of a list: the argument, which `@listSize` cannot name. */
const IDS = 'ids'

/**
 * How many items the field is asked for: as many as it is given `ids`; else the greatest of its slicing arguments, given
 * or by default; else the size that the schema assumes.
 */
function estimateSize(
  { assumedSize, slicingArguments = [] }: ListSize,
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Variables,
) {
  if (slicingArguments.length === 0 && !field.args.some(({ name }) => name === IDS)) return assumedSize
  const values = getArgumentValues(field, node, variables)
  const ids = values[IDS]
  if (Array.isArray(ids)) return ids.length
  const sizes = slicingArguments.flatMap((name) => {
    const size = values[name] ?? field.args.find((argument) => argument.name === name)?.defaultValue
    return typeof size === 'number' ? [Math.max(0, size)] : []
  })
  return sizes.length > 0 ? Math.max(...sizes) : assumedSize
}

function isIncluded(selection: SelectionNode, variables: Variables): boolean {
  if (!selection.directives?.length) return true
  if (getDirectiveValues(GraphQLSkipDirective, selection, variables)?.if === true) return false
  return getDirectiveValues(GraphQLIncludeDirective, selection, variables)?.if !== false
}
