import {
  type DirectiveNode,
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  Kind,
  type ListValueNode,
  parse,
  type StringValueNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql'

/** Lists of scopes of which one must be held whole; empty: a key is enough. */
export interface Requirement {
  /** `Type.field`, or the type. */
  readonly coordinate: string
  readonly anyOf: readonly (readonly string[])[]
}

/** Directives of authorization that are enforced here, under the names that the supergraph gives them. */
const ENFORCED: readonly string[] = ['authenticated', 'requiresScopes']
/** What @apollo/gateway enforces by itself. */
const ENFORCED_BY_APOLLO = 'inaccessible'
const LINK_OF_ENFORCED = /(url: "https:\/\/specs\.apollo\.dev\/(?:authenticated|requiresScopes)\/[^"]+"), for: SECURITY/g

/**
 * What the supergraph's `@authenticated` and `@requiresScopes` ask of who selects what. @apollo/gateway refuses a supergraph with them, because
 * it does not enforce them; `Operations` does, for every door, so that it may be given `loadableSdl`. The subgraphs judge again.
 */
export class Requirements {
  /** The supergraph as @apollo/gateway takes it. */
  readonly loadableSdl: string
  readonly #byCoordinate = new Map<string, Requirement>()

  /** @throws {Error} the supergraph has a directive of security that is not enforced here. */
  constructor(supergraphSdl: string) {
    const supergraph = parse(supergraphSdl)
    for (const { url, isRenamed } of securityLinks(supergraph)) {
      const name = url.split('/').at(-2)!
      if (isRenamed || !(ENFORCED.includes(name) || name === ENFORCED_BY_APOLLO))
        throw new Error(`the supergraph links ${url}, whose directive this gateway does not enforce under that name`)
    }
    this.loadableSdl = supergraphSdl.replaceAll(LINK_OF_ENFORCED, '$1')
    for (const definition of supergraph.definitions) {
      if (!('name' in definition) || !definition.name) continue
      this.#note(definition.name.value, 'directives' in definition ? definition.directives : undefined)
      if (!('fields' in definition)) continue
      for (const field of definition.fields ?? []) this.#note(`${definition.name.value}.${field.name.value}`, field.directives)
    }
  }

  /** Of all that one operation and its fragments select, with `@skip` and `@include` left out of account. */
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
        // Whichever type the value turns out to be of, its field is read.
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
      // Both on one field: the scopes say more.
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
