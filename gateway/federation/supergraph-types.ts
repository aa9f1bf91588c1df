import { type DocumentNode, Kind, type NamedTypeNode } from 'graphql'

/** What executing plans needs to know of the supergraph's types, with those that clients do not see. */
export class SupergraphTypes {
  /** The interfaces and unions of an object type or an interface, by its name. */
  readonly #abstractTypes = new Map<string, Set<string>>()
  readonly #enumValues = new Map<string, number>()

  /** The SDL must be valid, and have no extensions. */
  constructor({ definitions }: DocumentNode) {
    for (const definition of definitions) {
      if (definition.kind === Kind.ENUM_TYPE_DEFINITION) this.#enumValues.set(definition.name.value, definition.values?.length ?? 0)
      else if (definition.kind === Kind.UNION_TYPE_DEFINITION)
        for (const member of definition.types ?? []) this.#note(member.name.value, [definition])
      else if (definition.kind === Kind.OBJECT_TYPE_DEFINITION || definition.kind === Kind.INTERFACE_TYPE_DEFINITION)
        this.#note(definition.name.value, definition.interfaces ?? [])
    }
  }

  #note(name: string, abstractTypes: readonly Pick<NamedTypeNode, 'name'>[]): void {
    const known = this.#abstractTypes.get(name) ?? new Set()
    this.#abstractTypes.set(name, known)
    for (const type of abstractTypes) known.add(type.name.value)
  }

  /** Whether a type is the other one, implements it, or is a member of it. */
  isSubType(name: string, other: string): boolean {
    return name === other || this.#abstractTypes.get(name)?.has(other) === true
  }

  /** How many values an enum has; 0 if there is no such enum. */
  countValues(name: string): number {
    return this.#enumValues.get(name) ?? 0
  }
}
