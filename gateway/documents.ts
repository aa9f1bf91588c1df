import { hash as digestOf } from 'node:crypto'
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
import type { ErrorCode } from '../schema/errors.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import { documentWeight, WeighedCache } from '../subgraphs/common/link/weighed-cache.ts'
import type { Federation } from './federation/federation.ts'
import type { Requirement } from './federation/requirements.ts'
import { limitsRule, MAX_TOKENS } from './limits.ts'
import { locate } from './locations.ts'

/**
 * Bytes of operations kept parsed and validated. Enough for thousands, far more than a service and its frontends have.
 */
const MAX_CACHED_BYTES = 48 * 1024 * 1024
/**
 * Characters of an operation's text: ten times the longest that a frontend writes. graphql-js takes a second to read a
 * block string of 4 million.
 */
const MAX_TEXT_CHARACTERS = 262_144
/**
 * Line ends of an operation's text: five for each of its tokens. graphql-js looks for all of them again to say where an
 * error is.
 */
const MAX_LINE_ENDS = 10_000
/** Locations would keep every token of the text in memory. `locate` finds those of errors. */
export const PARSE_OPTIONS = { maxTokens: MAX_TOKENS, noLocation: true }
/** Validation of one document stops after this many errors. */
const MAX_COMPLAINTS = 20

/** An operation that has been parsed and validated. */
export interface Prepared {
  readonly document: DocumentNode
  readonly text: string
  readonly operation: OperationDefinitionNode
  /** The operation and its fragments, without the other operations of the document. */
  readonly alone: DocumentNode
  readonly operationName: string | undefined
  /** SHA-256 of the text, in hexadecimal. Plans are cached by it. */
  readonly hash: string
  /** The scopes that the caller needs. */
  readonly requirements: readonly Requirement[]
}

interface Checked extends Pick<Prepared, 'document' | 'hash'> {
  /** Bytes of memory that it takes. */
  readonly weight: number
  /** By operation name; `''` for an operation without a name. */
  readonly operations: Readonly<Record<string, Pick<Prepared, 'alone' | 'requirements'>>>
  /** The operations that were asked for, by the name that was given. No operation has the name `''`. */
  readonly prepared: Map<string | undefined, Prepared>
}

/** Parses each operation text once, and checks it against the schema and the limits. */
export class Documents {
  readonly #federation: Pick<Federation, 'schema' | 'requirements'>
  readonly #rules
  readonly #introspection: boolean
  readonly #cache = new WeighedCache<Checked>(MAX_CACHED_BYTES)
  /** Documents that were prepared but are not kept. They live as long as something else refers to them. */
  readonly #checked = new WeakMap<DocumentNode, Checked>()

  constructor(federation: Pick<Federation, 'schema' | 'requirements'>, introspection: boolean) {
    this.#federation = federation
    this.#introspection = introspection
    this.#rules = [...specifiedRules, limitsRule, ...(introspection ? [] : [NoSchemaIntrospectionCustomRule])]
  }

  /**
   * Gives the operation, or what is wrong with it. `parsed` is the parsed text, if the caller has it already.
   * @throws {KisError} `operation_too_complex`: the text is too long
   */
  prepare(query: string, operationName: string | undefined, parsed?: DocumentNode): Prepared | readonly GraphQLError[] {
    checkText(query)
    const hash = sha256(query)
    const checked = this.#cache.get(hash) ?? this.check(query, parsed)
    if (!('document' in checked)) return checked
    const prepared = prepareChecked(checked, query, operationName)
    if (prepared) return prepared
    return [new GraphQLError(operationName ? `There is no operation "${operationName}".` : 'Name the operation to run: there are several.')]
  }

  /** The kept document of the text with this SHA-256. */
  findDocument(hash: string): DocumentNode | undefined {
    return this.#cache.get(hash)?.document
  }

  /**
   * Keeps an operation that has run without an error, so that failing operations take no memory. `owner` is the
   * organization that it counts against.
   */
  cache({ document, hash }: Prepared, owner: string): void {
    const checked = this.#checked.get(document)
    if (!checked) return
    this.#checked.delete(document)
    this.#cache.set(hash, checked, checked.weight, owner)
  }

  /**
   * Gives the parsed text, or what is wrong with it.
   * @throws {KisError} `operation_too_complex`: the text is too long
   */
  check(query: string, parsed?: DocumentNode): Checked | readonly GraphQLError[] {
    checkText(query)
    const document = parsed ?? readText(query)
    if (document instanceof GraphQLError) return [document]
    const { schema, requirements } = this.#federation
    const errors = locate(this.#validate(document), { document, text: query })
    if (errors.length) return errors.map((error) => withCode('graphql_validation_failed', error as GraphQLError))
    const separate = Object.entries(separateOperations(document))
    const checked: Checked = {
      document,
      hash: sha256(query),
      weight: documentWeight(document, query),
      operations: Object.fromEntries(separate.map(([name, alone]) => [name, { alone, requirements: requirements.of(alone, schema) }])),
      prepared: new Map(),
    }
    this.#checked.set(document, checked)
    return checked
  }

  #validate(document: DocumentNode): readonly GraphQLError[] {
    try {
      const options = { maxErrors: MAX_COMPLAINTS, hideSuggestions: !this.#introspection }
      return validate(this.#federation.schema, document, this.#rules, options)
    } catch (error) {
      // On `@include(if: $x)` at the root of a subscription (SingleFieldSubscriptionsRule of graphql-js 16).
      if (error instanceof GraphQLError) return [error]
      throw error
    }
  }
}

/** Undefined: there is no such operation. */
function prepareChecked(checked: Checked, text: string, operationName: string | undefined): Prepared | undefined {
  const known = checked.prepared.get(operationName)
  if (known) return known
  const { document, hash } = checked
  const operation = getOperationAST(document, operationName)
  if (!operation) return undefined
  const prepared = { document, hash, text, operation, operationName, ...checked.operations[operation.name?.value ?? '']! }
  checked.prepared.set(operationName, prepared)
  return prepared
}

function readText(query: string): DocumentNode | GraphQLError {
  try {
    return parse(query, PARSE_OPTIONS)
  } catch (error) {
    if (error instanceof GraphQLError) return withCode('graphql_parse_failed', error)
    throw error
  }
}

/** The error with this code, if it has none of its own. */
function withCode(code: ErrorCode, error: GraphQLError): GraphQLError {
  if (error.extensions.code) return error
  const { message, source, positions } = error
  return new GraphQLError(message, { source, positions, extensions: { ...new KisError(code, message).extensions } })
}

/** @throws {KisError} `operation_too_complex`: the text has too many characters or lines */
export function checkText(query: string): void {
  if (query.length > MAX_TEXT_CHARACTERS) throw tooLong('characters', MAX_TEXT_CHARACTERS, query.length)
  if (query.length <= MAX_LINE_ENDS) return
  const lineEnds = query.match(/\r\n|[\n\r]/g)?.length ?? 0
  if (lineEnds > MAX_LINE_ENDS) throw tooLong('line ends', MAX_LINE_ENDS, lineEnds)
}

function tooLong(what: string, most: number, found: number): KisError {
  return new KisError(
    'operation_too_complex',
    `The text of an operation has at most ${most} ${what}; this one has ${found}. Put long values, such as the content of a file, into variables.`,
  )
}

function sha256(text: string): string {
  return digestOf('sha256', text)
}
