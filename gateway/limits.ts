import { type ASTNode, type ASTVisitor, GraphQLError, Kind, type SelectionSetNode, type ValidationContext } from 'graphql'
import { KisError } from '../subgraphs/common/errors.ts'

/** Most lexical tokens of one document. graphql-js stops reading there. */
export const MAX_TOKENS = 2_000

/** Characters of an alias. Each item of a list repeats the alias in the result. */
const MAX_ALIAS_CHARACTERS = 100

/**
 * Levels of lists in a value of the text. Apollo's planner reads each list twice with its content
 * (`collectVariablesInValue` of federation-internals 2.14), so 30 levels would keep it busy for minutes.
 */
const MAX_LISTS = 8

/**
 * Limits of one operation with its fragments expanded. The deepest list of the schema, documents of collections, needs
 * 8 levels. Apollo's planner follows every selection: 5,000 of them take it 50 ms, and 22 short fragments that each
 * spread the next one twice take it 30 s. One introspection of the whole schema takes 0.1 s; an alias below it is a
 * second one.
 */
const LIMITS = { depth: 10, aliases: 15, rootFields: 20, directives: 20, selections: 5_000, introspections: 2, fileContents: 1 }
type Size = typeof LIMITS

const WORDS: Record<keyof Size, string> = {
  depth: 'levels of fields',
  aliases: 'aliases',
  rootFields: 'root fields',
  directives: 'directives',
  selections: 'fields and fragments, counted wherever they are spread',
  fileContents: '`fileContent`, which holds up to 1 MiB of a file. Use `fileDownload`',
  introspections: 'introspections (`__schema`, `__type`, and each alias below them)',
}

/** Validation rule: refuses an operation above the limits with `OPERATION_TOO_COMPLEX`. */
export function limitsRule(context: ValidationContext): ASTVisitor {
  const measured = new Map<string, Size>()
  let lists = 0

  function complain(message: string, nodes: ASTNode): void {
    const { extensions } = new KisError('operation_too_complex', message)
    context.reportError(new GraphQLError(message, { nodes, extensions: { ...extensions } }))
  }

  /** Measures a selection set. `rootFields` counts the fields of this set alone. */
  function measureSize({ selections }: SelectionSetNode): Size {
    const size = { ...NOTHING }
    for (const selection of selections) {
      size.directives += selection.directives?.length ?? 0
      size.selections += 1
      if (selection.kind === Kind.FIELD) {
        const below = selection.selectionSet ? measureSize(selection.selectionSet) : NOTHING
        // Names with two underscores belong to the introspection. MaxIntrospectionDepthRule of graphql-js limits its
        // depth.
        if (!selection.name.value.startsWith('__')) size.depth = Math.max(size.depth, below.depth + 1)
        else if (selection.selectionSet) size.introspections += 1 + below.aliases
        size.fileContents += below.fileContents + (selection.name.value === 'fileContent' ? 1 : 0)
        size.aliases += below.aliases + (selection.alias ? 1 : 0)
        size.directives += below.directives
        size.selections += below.selections
        size.rootFields += 1
      } else {
        const inside = selection.kind === Kind.INLINE_FRAGMENT ? measureSize(selection.selectionSet) : sizeOfFragment(selection.name.value)
        size.depth = Math.max(size.depth, inside.depth)
        size.aliases += inside.aliases
        size.directives += inside.directives
        size.selections += inside.selections
        size.introspections += inside.introspections
        size.fileContents += inside.fileContents
        size.rootFields += inside.rootFields
      }
    }
    return size
  }

  /** Measures each fragment once, so that fragments that spread one another twice do not cost 2ⁿ steps. */
  function sizeOfFragment(name: string): Size {
    let size = measured.get(name)
    if (!size) {
      // A fragment that spreads itself counts once; NoFragmentCyclesRule refuses it.
      measured.set(name, NOTHING)
      const fragment = context.getFragment(name)
      size = fragment ? measureSize(fragment.selectionSet) : NOTHING
      measured.set(name, size)
    }
    return size
  }

  return {
    Field({ alias }) {
      if (alias && alias.value.length > MAX_ALIAS_CHARACTERS) complain(`An alias has more than ${MAX_ALIAS_CHARACTERS} characters.`, alias)
    },
    ListValue: {
      enter(list) {
        if (lists === MAX_LISTS) {
          complain(`A value has more than ${MAX_LISTS} levels of lists. Put it into a variable.`, list)
          return false
        }
        lists++
        return undefined
      },
      leave: () => void lists--,
    },
    OperationDefinition(operation) {
      const size = measureSize(operation.selectionSet)
      size.directives += operation.directives?.length ?? 0
      for (const name of Object.keys(LIMITS) as (keyof Size)[]) {
        if (size[name] > LIMITS[name]) complain(`The operation has more than ${LIMITS[name]} ${WORDS[name]}.`, operation)
      }
    },
  }
}

const NOTHING: Size = { depth: 0, aliases: 0, rootFields: 0, directives: 0, selections: 0, introspections: 0, fileContents: 0 }
