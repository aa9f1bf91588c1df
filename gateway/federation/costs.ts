import {
  type DirectiveNode,
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
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql'
import { KisError } from '../../subgraphs/common/errors.ts'
import type { Prepared } from '../documents.ts'
import type { Variables } from './request-context.ts'

/** Items of a list of objects of which the schema says nothing; `compose.ts` lets none of ours through. */
const ASSUMED_SIZE = 10
/** Fields of one operation with fragments expanded; two thousand tokens can spread fragments into far more. */
const MAX_FIELDS = 5_000

/** `@listSize` of a field. */
interface ListSize {
  readonly assumedSize?: number
  readonly slicingArguments?: readonly string[]
  readonly sizedFields?: readonly string[]
}

/** What one operation may give at most. */
export interface Cost {
  readonly nodes: number
  /** The root field, as the answer has it, that gives most of them, and how many. */
  readonly dearest: { readonly name: string; readonly nodes: number }
}

/** Fields that one place of the answer is made of. */
interface Place {
  readonly type: GraphQLNamedType
  readonly nodes: FieldNode[]
}

/**
 * What an operation may cost at most, by the supergraph's `@listSize` and `@cost` (IBM's cost specification, as Apollo's routers read it): each object
 * of the answer is a node, as many as its list was asked for; a weight stands instead where the schema gives one.
 */
export class Costs {
  readonly #lists = new Map<string, ListSize>()
  /** By type or `Type.field`. */
  readonly #weights = new Map<string, number>()

  constructor(supergraphSdl: string) {
    for (const definition of parse(supergraphSdl, { noLocation: true }).definitions) {
      if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION && definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue
      this.#note(definition.name.value, definition.directives)
      for (const { name, directives } of definition.fields ?? []) this.#note(`${definition.name.value}.${name.value}`, directives)
    }
  }

  /** The variables have been coerced. @throws {KisError} it has more fields than are looked at. */
  of({ document, operation }: Prepared, schema: GraphQLSchema, variables: Variables): Cost {
    const fragments = new Map(
      document.definitions.flatMap((each) => (each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each] as const] : [])),
    )
    const root = schema.getRootType(operation.operation)!
    let fields = 0

    /** Notes the fields of a selection under the names that the answer has them by, as execution merges them; of every type that a value may be of. */
    const collect = ({ selections }: SelectionSetNode, type: GraphQLNamedType, places: Map<string, Place>, spread: Set<string>): void => {
      for (const selection of selections) {
        if (!isAsked(selection, variables)) continue
        if (selection.kind === Kind.FIELD) {
          const key = selection.alias?.value ?? selection.name.value
          const place = places.get(key)
          if (place) place.nodes.push(selection)
          else places.set(key, { type, nodes: [selection] })
          continue
        }
        const name = selection.kind === Kind.FRAGMENT_SPREAD ? selection.name.value : undefined
        if (name !== undefined && spread.has(name)) continue
        if (name !== undefined) spread.add(name)
        const { typeCondition, selectionSet } = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value)!
        collect(selectionSet, (typeCondition && schema.getType(typeCondition.name.value)) ?? type, places, spread)
      }
    }

    /** Nodes below one object; `sized`: how many items those of its lists have whose parent was sliced. */
    const nodesOf = (places: Map<string, Place>, sized: Sized | undefined, noted?: (name: string, nodes: number) => void): number => {
      let sum = 0
      for (const [key, { type, nodes }] of places) {
        fields += 1
        if (fields > MAX_FIELDS)
          throw new KisError('operation_too_complex', `The operation has more than ${MAX_FIELDS} fields when its fragments are expanded.`)
        const nodesHere = nodesOfField(type, nodes, sized)
        noted?.(key, nodesHere)
        sum += nodesHere
      }
      return sum
    }

    const nodesOfField = (parent: GraphQLNamedType, nodes: readonly FieldNode[], sized: Sized | undefined): number => {
      const name = nodes[0]!.name.value
      const field = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined
      // Of introspection, whose answer is as long as the schema.
      if (!field) return 0
      const coordinate = `${parent.name}.${name}`
      const type = getNamedType(field.type)
      const weight = this.#weights.get(coordinate) ?? this.#weights.get(type.name) ?? (isCompositeType(type) ? 1 : 0)
      if (!isCompositeType(type)) return weight
      const list = this.#lists.get(coordinate)
      const size = list && sizeOf(list, field, nodes[0]!, variables)
      const count = isListType(getNullableType(field.type)) ? (sized?.fields.includes(name) ? sized.size : (size ?? ASSUMED_SIZE)) : 1
      const below = new Map<string, Place>()
      const spread = new Set<string>()
      for (const { selectionSet } of nodes) if (selectionSet) collect(selectionSet, type, below, spread)
      const slicing = list?.sizedFields && { fields: list.sizedFields, size: size ?? ASSUMED_SIZE }
      return count * (weight + nodesOf(below, slicing))
    }

    const places = new Map<string, Place>()
    collect(operation.selectionSet, root, places, new Set())
    let dearest = { name: '', nodes: 0 }
    const nodes = nodesOf(places, undefined, (name, those) => {
      if (those > dearest.nodes) dearest = { name, nodes: those }
    })
    return { nodes, dearest }
  }

  #note(coordinate: string, directives: readonly DirectiveNode[] = []): void {
    for (const { name, arguments: args = [] } of directives) {
      const values = Object.fromEntries(args.map((argument) => [argument.name.value, valueFromASTUntyped(argument.value)]))
      if (name.value === 'cost') this.#weights.set(coordinate, values.weight as number)
      if (name.value === 'listSize') this.#lists.set(coordinate, values)
    }
  }
}

interface Sized {
  readonly fields: readonly string[]
  readonly size: number
}

/** How many items the field is asked for: by its greatest slicing argument, given or by default, else as the schema assumes. */
function sizeOf(
  { assumedSize, slicingArguments = [] }: ListSize,
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Variables,
) {
  if (slicingArguments.length === 0) return assumedSize
  const given = getArgumentValues(field, node, variables)
  const sizes = slicingArguments.flatMap((name) => {
    const size = given[name] ?? field.args.find((argument) => argument.name === name)?.defaultValue
    return typeof size === 'number' ? [Math.max(0, size)] : []
  })
  return sizes.length > 0 ? Math.max(...sizes) : assumedSize
}

function isAsked(selection: SelectionNode, variables: Variables): boolean {
  if (!selection.directives?.length) return true
  if (getDirectiveValues(GraphQLSkipDirective, selection, variables)?.if === true) return false
  return getDirectiveValues(GraphQLIncludeDirective, selection, variables)?.if !== false
}
