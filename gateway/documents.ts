import { createHash } from 'node:crypto'
import {
  type DocumentNode,
  GraphQLError,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  separateOperations,
  specifiedRules,
  validate,
} from 'graphql'
import { Lru } from '../subgraphs/common/lru.ts'
import type { Federation } from './federation/federation.ts'
import type { Requirement } from './federation/requirements.ts'
import { limitsRule, MAX_TOKENS } from './limits.ts'

/** Distinct operation texts that are kept parsed and checked: far more than a service and its frontends have. */
const MAX_DOCUMENTS = 2_000
/** Longer texts (a file's content written into the operation) are checked each time, so that the documents kept stay below 32 MiB of text. */
const MAX_CACHED_CHARACTERS = 16_384
/** After this many complaints about one document the rest is not looked for. */
const MAX_COMPLAINTS = 20

/** An operation that may run. */
export interface Prepared {
  readonly document: DocumentNode
  readonly operation: OperationDefinitionNode
  readonly operationName: string | undefined
  /** SHA-256 of the text, in hexadecimal: key of plans. */
  readonly hash: string
  /** What the caller must be allowed to. */
  readonly requirements: readonly Requirement[]
}

interface Checked extends Pick<Prepared, 'document' | 'hash'> {
  /** By operation name, `''` for the one without. */
  readonly requirements: Readonly<Record<string, readonly Requirement[]>>
}

/** Operation texts, parsed and checked against schema and limits once each. */
export class Documents {
  readonly #federation: Pick<Federation, 'schema' | 'requirements'>
  readonly #rules
  readonly #checked = new Lru<string, Checked>(MAX_DOCUMENTS)

  constructor(federation: Pick<Federation, 'schema' | 'requirements'>, introspection: boolean) {
    this.#federation = federation
    this.#rules = [...specifiedRules, limitsRule, ...(introspection ? [] : [NoSchemaIntrospectionCustomRule])]
  }

  /** The operation, or what is wrong with it. */
  prepare(query: string, operationName: string | undefined): Prepared | readonly GraphQLError[] {
    let checked: Checked | readonly GraphQLError[] | undefined = this.#checked.get(query)
    if (!checked) {
      checked = this.check(query)
      if ('document' in checked && query.length <= MAX_CACHED_CHARACTERS) this.#checked.set(query, checked)
    }
    if (!('document' in checked)) return checked
    const operation = getOperationAST(checked.document, operationName)
    if (operation) return { ...checked, operation, operationName, requirements: checked.requirements[operation.name?.value ?? '']! }
    return [new GraphQLError(operationName ? `There is no operation "${operationName}".` : 'Name the operation to run: there are several.')]
  }

  /** The text parsed, or what is wrong with it. */
  check(query: string): Checked | readonly GraphQLError[] {
    try {
      const { schema, requirements } = this.#federation
      const document = parse(query, { maxTokens: MAX_TOKENS })
      const errors = validate(schema, document, this.#rules, { maxErrors: MAX_COMPLAINTS })
      if (errors.length) return errors
      const operations = Object.entries(separateOperations(document))
      return {
        document,
        hash: createHash('sha256').update(query).digest('hex'),
        requirements: Object.fromEntries(operations.map(([name, operation]) => [name, requirements.of(operation, schema)])),
      }
    } catch (error) {
      // Not only `parse`: `validate` throws on `@include(if: $x)` at the root of a subscription (graphql-js 16, SingleFieldSubscriptionsRule).
      if (error instanceof GraphQLError) return [error]
      throw error
    }
  }
}
