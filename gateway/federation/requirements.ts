import {
  type DirectiveNode,
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  Kind,
  type ListValueNode,
  type StringValueNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql'

/**
 * Scopes that a part of the schema requires. `anyOf` lists alternatives: the caller needs all scopes of one list.
 * Empty: any valid key suffices.
 */
export interface Requirement {
  /** `Type.field`, or the name of a type. */
  readonly coordinate: string
  readonly anyOf: readonly (readonly string[])[]
}

/** Authorization directives that are enforced here, by their names in the supergraph. */
const ENFORCED: readonly string[] = ['authenticated', 'requiresScopes']
/** The security directive that the schema of clients enforces: that schema lacks whatever has the directive. */
const ENFORCED_BY_SCHEMA = 'inaccessible'

/**
 * The requirements that the supergraph's `@authenticated` and `@requiresScopes` set for a selection. `Operations`
 * enforces them for every transport. The subgraphs check again.
 */
export class Requirements {
  readonly #byCoordinate = new Map<string, Requirement>()

  /** @throws {Error} the supergraph has a security directive that is not enforced here */
  constructor(supergraph: DocumentNode) {
    for (const { url, isRenamed } of securityLinks(supergraph)) {
      const name = url.split('/').at(-2)!
      if (isRenamed || !(ENFORCED.includes(name) || name === ENFORCED_BY_SCHEMA))
        throw new Error(`the supergraph links ${url}, whose directive this gateway does not enforce under that name`)
    }
    for (const definition of supergraph.definitions) {
      if (!('name' in definition) || !definition.name) continue
      this.#note(definition.name.value, 'directives' in definition ? definition.directives : undefined)
      if (!('fields' in definition)) continue
      for (const field of definition.fields ?? []) this.#note(`${definition.name.value}.${field.name.value}`, field.directives)
    }
  }

  /**
   * Returns the requirements of everything that one operation and its fragments select, ignoring `@skip` and
   * `@include`.
   */
  of(operation: DocumentNode, schema: GraphQLSchema): readonly Requirement[] {
    const met = new Set<Requirement>()
    const meet = (coordinate: string) => {
      const requirement = this.#byCoordinate.get(coordinate)
      if (requirement) met.add(requirement)
    }
    const types = new TypeInfo(schema)
    const visitor = visitWithTypeInfo(types, {
      Field({ name }) {
        const parent = types.getParentType()
        const type = getNamedType(types.getType())
        if (!parent || !type) return
        // The value may have any of these types.
        for (const { name: owner } of [parent, ...(isAbstractType(parent) ? schema.getPossibleTypes(parent) : [])])
          meet(`${owner}.${name.value}`)
        meet(type.name)
      },
      InlineFragment: ({ typeCondition }) => void (typeCondition && meet(typeCondition.name.value)),
      FragmentDefinition: ({ typeCondition }) => meet(typeCondition.name.value),
    })
    visit(operation, visitor)
    return [...met]
  }

  #note(coordinate: string, directives: readonly DirectiveNode[] | undefined): void {
    for (const { name, arguments: args } of directives ?? []) {
      if (!ENFORCED.includes(name.value)) continue
      const alternatives = (args?.find((argument) => argument.name.value === 'scopes')?.value as ListValueNode | undefined)?.values ?? []
      const anyOf = alternatives.map((scopes) => (scopes as ListValueNode).values.map((scope) => (scope as StringValueNode).value))
      // If a field has both directives, the scopes imply authentication.
      if (anyOf.length > 0 || !this.#byCoordinate.has(coordinate)) this.#byCoordinate.set(coordinate, { coordinate, anyOf })
    }
  }
}

function securityLinks({ definitions }: DocumentNode) {
  return definitions.flatMap((definition) => {
    if (definition.kind !== Kind.SCHEMA_DEFINITION && definition.kind !== Kind.SCHEMA_EXTENSION) return []
    return (definition.directives ?? []).flatMap(({ name, arguments: args = [] }) => {
      const value = (argument: string) => args.find((node) => node.name.value === argument)?.value
      const purpose = value('for')
      if (name.value !== 'link' || purpose?.kind !== Kind.ENUM || purpose.value !== 'SECURITY') return []
      return [{ url: (value('url') as StringValueNode).value, isRenamed: value('as') !== undefined }]
    })
  })
}
