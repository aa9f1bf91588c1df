import {
  type DirectiveNode,
  type DocumentNode,
  executeSync,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  separateOperations,
  visit,
} from 'graphql'
import type { Prepared } from '../documents.ts'
import type { Values, Variables } from './values.ts'

/**
 * Combinations of `@skip` and `@include` for which the shape of one operation is kept. Operations have one or two
 * variables for them.
 */
const MAX_KEPT = 16

/** The value is null where none may be, so what it is in is null. */
const INVALID = Symbol('null where none may be')

/** Gives the value as clients see it: null when it does not fit the schema, or `INVALID`. */
type Complete = (value: unknown) => unknown
type CompleteObject = (source: Values) => Values | typeof INVALID

/** A selection, and the type that its fields belong to. */
interface Part {
  readonly selectionSet: SelectionSetNode
  readonly parent: GraphQLNamedType
}

/** The fields that are merged into one field of the answer. */
interface Place {
  readonly nodes: FieldNode[]
  /** By the first of them. Null: the name of the type. */
  readonly type: GraphQLOutputType | null
  readonly below: Part[]
}

/** For one combination of `@skip` and `@include`. */
interface Shape {
  readonly complete: CompleteObject
  /** By name in the answer: `__schema` and `__type`, which no subgraph answers. */
  readonly introspection: ReadonlyMap<string, readonly FieldNode[]>
}

/**
 * Makes the answer of one operation of the data that its plan gave: the fields that were asked for, in their order,
 * with values of their types, and null where a value is missing. What an object becomes is worked out once for each of
 * its types, when the first such object comes.
 */
export class AnswerShapes {
  readonly #schema: GraphQLSchema
  readonly #document: DocumentNode
  readonly #operation: OperationDefinitionNode
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>
  /** The variables of `@skip` and `@include`. */
  readonly #conditions: readonly string[]
  readonly #kept = new Map<string, Shape>()

  /** `schema`: what clients see. The operation must be valid. */
  constructor(schema: GraphQLSchema, { document, operation }: Pick<Prepared, 'document' | 'operation'>) {
    this.#schema = schema
    this.#document = separateOperations(document)[operation.name?.value ?? '']!
    this.#operation = operation
    this.#fragments = new Map(
      document.definitions.flatMap((each) => (each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each] as const] : [])),
    )
    this.#conditions = findConditions(this.#document)
  }

  /**
   * `data` may be written into. Null: something that may not be null is, and nothing above it may be.
   * @throws {Error} a subgraph gave an object for a list, or the like
   */
  answerOf(data: Values, variables: Variables): Values | null {
    const shape = this.#shapeFor(variables)
    for (const [key, nodes] of shape.introspection) data[key] = this.#introspect(key, nodes, variables)
    const answer = shape.complete(data)
    return answer === INVALID ? null : answer
  }

  #shapeFor(variables: Variables): Shape {
    let key = ''
    for (const name of this.#conditions) {
      if (typeof variables[name] !== 'boolean') throw new Error(`the variable $${name} of @skip or @include is not a boolean`)
      key += variables[name] ? '1' : '0'
    }
    const known = this.#kept.get(key)
    if (known) return known
    const shape = this.#compile((directive) => isTrue(directive, variables))
    if (this.#kept.size < MAX_KEPT) this.#kept.set(key, shape)
    return shape
  }

  #compile(isTrueFor: (directive: DirectiveNode) => boolean): Shape {
    const compiler = new Compiler(this.#schema, this.#fragments, isTrueFor)
    const root = this.#schema.getRootType(this.#operation.operation)!
    return compiler.compileRoot(root, this.#operation.selectionSet)
  }

  /** The answer to one field of the introspection. */
  #introspect(key: string, selections: readonly FieldNode[], variables: Variables): unknown {
    const used = new Set<string>()
    const fragments = [...this.#fragments.values()]
    const note = { Variable: ({ name }: { readonly name: { readonly value: string } }) => void used.add(name.value) }
    for (const node of [...selections, ...fragments]) visit(node, note)
    const operation: OperationDefinitionNode = {
      kind: Kind.OPERATION_DEFINITION,
      operation: this.#operation.operation,
      variableDefinitions: (this.#operation.variableDefinitions ?? []).filter(({ variable }) => used.has(variable.name.value)),
      selectionSet: { kind: Kind.SELECTION_SET, selections },
    }
    const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments] }
    const { data, errors } = executeSync({ schema: this.#schema, document, rootValue: {}, variableValues: variables })
    if (errors) throw errors[0]!
    return data![key]
  }
}

class Compiler {
  readonly #schema: GraphQLSchema
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly #isTrue: (directive: DirectiveNode) => boolean

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    isTrueFor: (directive: DirectiveNode) => boolean,
  ) {
    this.#schema = schema
    this.#fragments = fragments
    this.#isTrue = isTrueFor
  }

  compileRoot(root: GraphQLNamedType, selectionSet: SelectionSetNode): Shape {
    const places = this.#collect([{ selectionSet, parent: root }], root)
    const introspection = new Map<string, readonly FieldNode[]>()
    for (const [key, { nodes }] of places) if (isIntrospection(nodes[0]!)) introspection.set(key, nodes)
    return { complete: this.#objectOf(places, root), introspection }
  }

  /** Collects the fields of an object of the type, by their names in the answer. */
  #collect(parts: readonly Part[], type: GraphQLNamedType): Map<string, Place> {
    const places = new Map<string, Place>()
    const spread = new Set<FragmentDefinitionNode>()
    const collect = ({ selectionSet, parent }: Part): void => {
      for (const selection of selectionSet.selections) {
        if (!this.#isAsked(selection)) continue
        if (selection.kind === Kind.FIELD) {
          const key = (selection.alias ?? selection.name).value
          const fieldType = this.#typeOf(selection, parent)
          const place = places.get(key) ?? { nodes: [], type: fieldType, below: [] }
          places.set(key, place)
          place.nodes.push(selection)
          if (selection.selectionSet && fieldType)
            place.below.push({ selectionSet: selection.selectionSet, parent: namedTypeOf(fieldType) })
          continue
        }
        const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#fragments.get(selection.name.value)!
        if (fragment.kind === Kind.FRAGMENT_DEFINITION) {
          if (spread.has(fragment)) continue
          spread.add(fragment)
        }
        const condition = this.#conditionOf(fragment.typeCondition) ?? parent
        if (this.#applies(condition, type)) collect({ selectionSet: fragment.selectionSet, parent: condition })
      }
    }
    for (const part of parts) collect(part)
    return places
  }

  #conditionOf(condition: NamedTypeNode | undefined): GraphQLNamedType | undefined {
    return condition && this.#schema.getType(condition.name.value)
  }

  #applies(condition: GraphQLNamedType, type: GraphQLNamedType): boolean {
    if (condition === type) return true
    return isAbstractType(condition) && (isObjectType(type) || isInterfaceType(type)) && this.#schema.isSubType(condition, type)
  }

  #isAsked({ directives = [] }: SelectionNode): boolean {
    return directives.every((directive) => {
      if (directive.name.value === 'skip') return !this.#isTrue(directive)
      return directive.name.value !== 'include' || this.#isTrue(directive)
    })
  }

  /** Null: the name of the type, or a field of the introspection. */
  #typeOf(node: FieldNode, parent: GraphQLNamedType): GraphQLOutputType | null {
    const { value } = node.name
    if (value === '__typename' || isIntrospection(node)) return null
    if (!isObjectType(parent) && !isInterfaceType(parent)) throw new Error(`${parent.name} has no fields`)
    const field = parent.getFields()[value]
    if (!field) throw new Error(`${parent.name} has no field ${value}`)
    return field.type
  }

  #objectOf(places: ReadonlyMap<string, Place>, type: GraphQLNamedType): CompleteObject {
    const fields = [...places].map(([key, place]) => ({ key, complete: this.#fieldOf(key, place, type) }))
    const hasPrototype = !places.has('__proto__')
    return (source) => {
      const answer: Values = hasPrototype ? {} : Object.create(null)
      for (let i = 0; i < fields.length; i++) {
        const { key, complete } = fields[i]!
        const value = complete(source)
        if (value === INVALID) return INVALID
        answer[key] = value
      }
      return answer
    }
  }

  #fieldOf(key: string, { nodes, type, below }: Place, parent: GraphQLNamedType): (source: Values) => unknown {
    const read =
      key in Object.prototype
        ? (source: Values) => (Object.hasOwn(source, key) ? (source[key] ?? null) : null)
        : (source: Values) => source[key] ?? null
    if (isIntrospection(nodes[0]!)) return read
    if (!type) {
      return (source) => {
        const name = read(source) ?? source.__typename
        const named = typeof name === 'string' && name !== parent.name ? (this.#schema.getType(name) ?? parent) : parent
        return isObjectType(named) ? named.name : INVALID
      }
    }
    const complete = this.#completeOf(type, below)
    return (source) => complete(read(source))
  }

  #completeOf(type: GraphQLOutputType, below: readonly Part[]): Complete {
    if (isNonNullType(type)) {
      const complete = this.#completeOf(type.ofType, below)
      return (value) => complete(value) ?? INVALID
    }
    if (isListType(type)) {
      const complete = this.#completeOf(type.ofType, below)
      return (value) => (value === null ? null : completeItems(value, complete))
    }
    if (isCompositeType(type)) return this.#completeComposite(type, below)
    const isLeaf = leafOf(type)
    return (value) => (value !== null && isLeaf(value) ? value : null)
  }

  #completeComposite(declared: GraphQLNamedType, below: readonly Part[]): Complete {
    const byType = new Map<string, CompleteObject | null>()
    const find = (name: string): CompleteObject | null => {
      const known = byType.get(name)
      if (known !== undefined) return known
      const type = name === declared.name ? declared : this.#schema.getType(name)
      // A type that clients do not see.
      if (!type || !isCompositeType(type)) return null
      const complete = this.#objectOf(this.#collect(below, type), type)
      byType.set(name, complete)
      return complete
    }
    return (value) => {
      if (value === null) return null
      if (typeof value !== 'object') throw new Error(`a subgraph gave ${typeof value} for an object of type ${declared.name}`)
      const { __typename: name } = value as Values
      const complete = find(typeof name === 'string' && name !== '' ? name : declared.name)
      const answer = complete?.(value as Values) ?? null
      return answer === INVALID ? null : answer
    }
  }
}

function completeItems(value: unknown, complete: Complete): unknown {
  if (!Array.isArray(value)) throw new Error(`a subgraph gave ${typeof value} for a list`)
  const items = new Array<unknown>(value.length)
  for (let i = 0; i < value.length; i++) {
    items[i] = complete(value[i] ?? null)
    if (items[i] === INVALID) return null
  }
  return items
}

/** Above it JSON has no digits of an integer. */
const LARGEST_INTEGER = 1e21
const isInteger = (value: unknown) => Number.isInteger(value) && Math.abs(value as number) < LARGEST_INTEGER
/** What JSON may hold for a scalar of GraphQL itself. A scalar of our own takes anything. */
const SCALARS: Readonly<Record<string, (value: unknown) => boolean>> = {
  Boolean: (value) => typeof value === 'boolean',
  Int: isInteger,
  Float: (value) => Number.isFinite(value),
  String: (value) => typeof value === 'string',
  ID: (value) => typeof value === 'string' || isInteger(value),
}

function leafOf(type: GraphQLNamedType): (value: unknown) => boolean {
  if (!isEnumType(type)) return SCALARS[type.name] ?? (() => true)
  return (value) => typeof value === 'string' && type.getValue(value) !== undefined
}

function namedTypeOf(type: GraphQLOutputType): GraphQLNamedType {
  return isNonNullType(type) || isListType(type) ? namedTypeOf(type.ofType) : type
}

function isIntrospection({ name }: FieldNode): boolean {
  return name.value === '__schema' || name.value === '__type'
}

function isTrue({ arguments: args }: DirectiveNode, variables: Variables): boolean {
  const value = args?.[0]?.value
  return value?.kind === Kind.VARIABLE ? variables[value.name.value] === true : value?.kind === Kind.BOOLEAN && value.value
}

function findConditions(document: DocumentNode): readonly string[] {
  const found = new Set<string>()
  visit(document, {
    Directive({ name, arguments: args }) {
      const value = args?.[0]?.value
      if ((name.value === 'skip' || name.value === 'include') && value?.kind === Kind.VARIABLE) found.add(value.name.value)
    },
  })
  return [...found]
}
