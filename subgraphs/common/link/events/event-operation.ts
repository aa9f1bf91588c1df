import { type DocumentNode, type FieldNode, Kind, type OperationDefinitionNode, visit } from 'graphql'

/** A subscription in the form in which each of its events is executed. */
export interface EventOperation {
  readonly document: DocumentNode
  toVariables(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
}

/**
 * graphql-js checks all variables again for each event, and those of a chat contain the whole conversation. The
 * arguments of the root field only start the stream, so a variable that is used nowhere else becomes `true` for the
 * events. Only an operation of one field, without fragments or directives, is changed.
 */
export function eventOperation(document: DocumentNode): EventOperation {
  const asItIs: EventOperation = { document, toVariables: (variables) => variables }
  const [operation, ...others] = document.definitions
  if (operation?.kind !== Kind.OPERATION_DEFINITION || others.length > 0 || operation.directives?.length) return asItIs
  const [root, ...more] = operation.selectionSet.selections
  if (root?.kind !== Kind.FIELD || more.length > 0 || root.directives?.length) return asItIs
  const used = usedBelow(root)
  const isSpared = (name: string) => !used.has(name)
  const definitions = operation.variableDefinitions ?? []
  if (!definitions.some(({ variable }) => isSpared(variable.name.value))) return asItIs
  const forEvents: OperationDefinitionNode = {
    ...operation,
    variableDefinitions: definitions.map((definition) =>
      isSpared(definition.variable.name.value)
        ? {
            kind: Kind.VARIABLE_DEFINITION,
            variable: definition.variable,
            type: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: 'Boolean' } },
          }
        : definition,
    ),
  }
  const names = definitions.map(({ variable }) => variable.name.value)
  return {
    document: { ...document, definitions: [forEvents] },
    toVariables: (variables) =>
      Object.fromEntries(names.flatMap((name) => (isSpared(name) ? [[name, true]] : name in variables ? [[name, variables[name]]] : []))),
  }
}

/** Names of the variables used in the field's selections. */
function usedBelow({ selectionSet }: FieldNode): ReadonlySet<string> {
  const names = new Set<string>()
  if (selectionSet) visit(selectionSet, { Variable: ({ name }) => void names.add(name.value) })
  return names
}
