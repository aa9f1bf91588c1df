import {
  type ASTNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  Source,
  visit,
} from 'graphql'
import { MAX_TOKENS } from './limits.ts'

/** An operation that was parsed without locations, with its text. */
interface Located {
  readonly document: DocumentNode
  readonly text: string
  readonly operation?: OperationDefinitionNode
}

/**
 * Adds to each error its location in the text: that of its nodes, or of the field at its path. Documents are cached
 * without locations, so this function parses the text again. `limitsRule` limits the work.
 */
export function locate(errors: readonly unknown[], { document, text, operation }: Located): readonly unknown[] {
  let positions: ReadonlyMap<ASTNode, number> | undefined
  return errors.map((error) => {
    const { message, nodes, path, locations, extensions } = (error ?? {}) as Partial<GraphQLError>
    if (typeof message !== 'string' || locations) return error
    const found = nodes ?? (path && operation ? fieldsAt(path, operation, document) : [])
    if (found.length === 0) return error
    positions ??= readPositions(document, text)
    return new GraphQLError(message, {
      source: new Source(text),
      positions: found.flatMap((node) => positions!.get(node) ?? []),
      path: path ?? null,
      extensions: extensions ?? null,
      originalError: error instanceof Error ? error : null,
    })
  })
}

/** Returns the start of each node of the document in its text. */
function readPositions(document: DocumentNode, text: string): ReadonlyMap<ASTNode, number> {
  const starts: number[] = []
  visit(parse(text, { maxTokens: MAX_TOKENS }), { enter: ({ loc }) => void starts.push(loc!.start) })
  const positions = new Map<ASTNode, number>()
  // The text is the same, so the nodes come in the same order.
  visit(document, { enter: (node) => void positions.set(node, starts[positions.size]!) })
  return positions
}

/** Returns the fields that make up the value at a path of the result. */
function fieldsAt(
  path: readonly (string | number)[],
  { selectionSet }: OperationDefinitionNode,
  { definitions }: DocumentNode,
): readonly FieldNode[] {
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
  let within: readonly SelectionSetNode[] = [selectionSet]
  let found: readonly FieldNode[] = []
  for (const key of path.filter((part) => typeof part === 'string')) {
    found = fieldsOf(within, fragments).filter(({ alias, name }) => (alias ?? name).value === key)
    within = found.flatMap((field) => field.selectionSet ?? [])
  }
  return found
}

function fieldsOf(sets: readonly SelectionSetNode[], fragments: readonly FragmentDefinitionNode[]): readonly FieldNode[] {
  const fields: FieldNode[] = []
  const toRead = new Set(sets)
  // The loop also reads sets that are added meanwhile, and reads each set once.
  for (const { selections } of toRead) {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) fields.push(selection)
      else if (selection.kind === Kind.INLINE_FRAGMENT) toRead.add(selection.selectionSet)
      else for (const { name, selectionSet } of fragments) if (name.value === selection.name.value) toRead.add(selectionSet)
    }
  }
  return fields
}
