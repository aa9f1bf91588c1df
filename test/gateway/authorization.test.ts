import { readFileSync } from 'node:fs'
import { composeServices } from '@apollo/composition'
import {
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  graphql,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isRequiredArgument,
  isRequiredInputField,
  parse,
} from 'graphql'
import { describe, expect, it } from 'vitest'
import { Documents } from '../../gateway/documents.ts'
import { Federation } from '../../gateway/federation/federation.ts'
import { Requirements } from '../../gateway/federation/requirements.ts'
import { createMask } from '../../gateway/mask.ts'
import { Operations } from '../../gateway/operations.ts'
import { resolvers as billing } from '../../subgraphs/billing/resolvers/index.ts'
import { type Principal, SCOPES, type Scope } from '../../subgraphs/common/identity/principal.ts'
import { subgraphSchema } from '../../subgraphs/common/link/subgraph.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { resolvers as inference } from '../../subgraphs/inference/resolvers/index.ts'
import { AgentRuns } from '../../subgraphs/inference/use-cases/agents/agent-runs.ts'
import { CallLimits } from '../../subgraphs/inference/use-cases/calls/call-limits.ts'
import { LoadShedder } from '../../subgraphs/inference/use-cases/calls/load-shedding.ts'
import { Principals } from '../../subgraphs/inference/use-cases/calls/principals.ts'
import { OwnRates } from '../../subgraphs/inference/use-cases/calls/rate-usage.ts'
import { PoisonGuard } from '../../subgraphs/inference/use-cases/runs/poison-guard.ts'
import { WorkflowRuns } from '../../subgraphs/inference/use-cases/workflows/workflow-runs.ts'
import { resolvers as knowledge } from '../../subgraphs/knowledge/resolvers/index.ts'
import { CONFIG, collect, connect, createPrincipal, KEY, startGateway } from './support/start.ts'

/** A schema with each directive wherever it may stand. */
const SDL = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@authenticated", "@requiresScopes"])
  type Query { open: Int
    withKey: Int @authenticated
    withScope: Int @requiresScopes(scopes: [["admin"]])
    withEither: Int @requiresScopes(scopes: [["admin", "operator"], ["billing:read"]])
    object: Secret thing: Thing mood: Mood token: Token }
  type Mutation { updateApiKey: Int @requiresScopes(scopes: [["admin"]]) }
  type Subscription { ticks: Int @requiresScopes(scopes: [["admin"]]) }
  type Secret @requiresScopes(scopes: [["admin"]]) { n: Int }
  interface Thing { id: ID }
  type Pen implements Thing { id: ID }
  type Safe implements Thing @requiresScopes(scopes: [["admin"]]) { id: ID code: Int }
  enum Mood @requiresScopes(scopes: [["admin"]]) { CALM }
  scalar Token @requiresScopes(scopes: [["admin"]])`

function compose(sdl: string): string {
  const { supergraphSdl, errors } = composeServices([{ name: 'inference', url: 'http://inference', typeDefs: parse(sdl) }])
  if (!supergraphSdl) throw new Error(errors?.map(({ message }) => message).join('\n'))
  return supergraphSdl
}

async function start(scopes: readonly Scope[]) {
  const reached: string[] = []
  const execute = async ({ query }: { query: string }) => {
    reached.push(query)
    return { data: {} }
  }
  const link = {
    execute,
    openBytes: () => {
      throw new Error('not asked')
    },
    subscribe: () => {
      throw new Error('a subscription was begun')
    },
  }
  const gateway = await startGateway({
    supergraphSdl: compose(SDL),
    links: { billing: link, inference: link, knowledge: link },
    authenticate: async (apiKey) => ({ ...createPrincipal(apiKey), scopes }),
  })
  return { ...gateway, reached }
}

it('clears the key cache after a change of rules, and not after a denied one', async () => {
  const link = {
    execute: async () => ({ data: { updateApiKey: 1 } }),
    openBytes: () => Promise.reject(new Error('not asked')),
    subscribe: () => {
      throw new Error('not asked')
    },
    problems: async () => null,
  }
  await using federation = await Federation.open(compose(SDL), { billing: link, inference: link, knowledge: link })
  const evicted: string[] = []
  const operations = new Operations(
    new Documents(federation, true),
    federation,
    createMask(silentLog),
    { watch: () => () => undefined },
    { evictAfterChange: ({ apiKeyId }, liftsRefusals) => void evicted.push(`${apiKeyId} ${liftsRefusals}`) },
    CONFIG,
  )
  const prepared = operations.prepare('mutation { updateApiKey }', undefined, 'req_1')
  if (!('document' in prepared)) throw new Error(prepared.errors?.[0]?.message)
  const run = async (caller: Principal) =>
    (await operations.execute(prepared, {}, { caller, requestId: 'req_1', signal: new AbortController().signal })).errors?.length ?? 0
  const tenant = createPrincipal(KEY)
  expect([await run(tenant), await run({ ...tenant, scopes: ['admin'] })]).toEqual([1, 0])
  expect(evicted).toEqual([`${tenant.apiKeyId} true`])
})

describe('Authorization directives at the gateway', () => {
  for (const { what, query } of [
    { what: 'a field', query: '{ withScope }' },
    { what: 'a field with alternatives', query: '{ withEither }' },
    { what: 'a field beside open ones', query: '{ open withScope }' },
    { what: 'a field in a fragment', query: 'query { ...F } fragment F on Query { withScope }' },
    { what: 'a field of a type', query: '{ object { n } }' },
    { what: 'a field that may return such a type', query: '{ thing { ... on Safe { id } } }' },
    { what: 'an enum', query: '{ mood }' },
    { what: 'a scalar', query: '{ token }' },
  ]) {
    it(`refuse ${what} to a key without the scope, without a subgraph request`, async () => {
      const { post, reached } = await start(['inference'])
      const { body } = await post({ query })
      expect(body.errors).toMatchObject([{ extensions: { code: 'PERMISSION_DENIED' } }])
      expect(body.data ?? null).toBeNull()
      expect(reached).toEqual([])
    })

    it(`allow ${what} for a key with the scope`, async () => {
      const { post, reached } = await start(['admin'])
      await post({ query })
      expect(reached).toHaveLength(1)
    })
  }

  it('accept one of several alternatives', async () => {
    const { post, reached } = await start(['billing:read'])
    await post({ query: '{ withEither }' })
    expect(reached).toHaveLength(1)
  })

  it('require only a key for @authenticated, and check only the operation that runs', async () => {
    const { post, reached } = await start([])
    await post({ query: 'query Mine { withKey open } query Other { withScope }', operationName: 'Mine' })
    expect(reached).toHaveLength(1)
    expect((await post({ query: '{ withKey }' }, {})).status).toBe(401)
  })

  it('apply over sockets, for queries and subscriptions', async () => {
    const { wsUrl, reached } = await start(['inference'])
    const { client } = connect(wsUrl)
    for (const query of ['{ withScope }', 'subscription { ticks }']) {
      const result = collect(client, query)
      await result.over
      expect(result.results).toMatchObject([{ errors: [{ extensions: { code: 'PERMISSION_DENIED' } }] }])
    }
    expect(reached).toEqual([])
  })

  it('stop the start when one is not enforced', () => {
    const policy = SDL.replace('"@requiresScopes"]', '"@requiresScopes", "@policy"]').replace(
      'open: Int',
      'open: Int @policy(policies: [["p"]])',
    )
    expect(() => new Requirements(parse(compose(policy)))).toThrow(/policy.* does not enforce/)
  })
})

const supergraph = new Requirements(parse(readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')))

/** A document that asks for one root field with whatever its arguments need. */
function operationOn(kind: string, field: ReturnType<GraphQLObjectType['getFields']>[string]): string {
  const args = field.args.filter(isRequiredArgument).map(({ name, type }) => `${name}: ${writeLiteral(type)}`)
  const call = args.length > 0 ? `${field.name}(${args.join(', ')})` : field.name
  return `${kind} { ${call}${isLeafType(getNamedType(field.type)) ? '' : ' { __typename }'} }`
}

function writeLiteral(type: GraphQLInputType): string {
  if (isNonNullType(type)) return writeLiteral(type.ofType)
  if (isListType(type)) return '[]'
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).filter(isRequiredInputField)
    return `{ ${fields.map((field) => `${field.name}: ${writeLiteral(field.type)}`).join(', ')} }`
  }
  if (isEnumType(type)) return type.getValues()[0]!.name
  return (
    { Int: '1', Float: '1', Boolean: 'true', ID: '"x"', USD: '"1"', DateTime: '"2026-01-01T00:00:00.000Z"', JSON: '{}' }[type.name] ?? '"x"'
  )
}

const SUBGRAPHS: Readonly<Record<string, GraphQLSchema>> = {
  billing: subgraphSchema('billing', billing),
  inference: subgraphSchema('inference', inference),
  knowledge: subgraphSchema('knowledge', knowledge),
}

/** What must not be used before the caller is judged. */
const unused = new Proxy({}, { get: (_, property) => () => Promise.reject(new Error(`${String(property)} was used`)) })
const never = new Promise<never>(() => undefined)

describe.each(Object.entries(SUBGRAPHS))('Subgraph %s, called directly', (_name, schema) => {
  const roots = [
    ['query', schema.getQueryType()],
    ['mutation', schema.getMutationType()],
  ] as const
  const guarded = roots.flatMap(([kind, root]) =>
    Object.values(root?.getFields() ?? {}).flatMap((field) => {
      const [requirement] = supergraph.of(parse(`${kind} { ${field.name} }`), schema)
      return requirement?.anyOf.length ? [{ kind, field, scope: requirement.anyOf[0]![0]!, name: field.name }] : []
    }),
  )

  it.each(guarded)('refuses $name to a key that has every scope but those that grant $scope', async ({ kind, field, scope }) => {
    const scopes = SCOPES.filter((other) => other !== scope && other !== 'operator' && (other !== 'admin' || scope === 'operator'))
    const caller = { ...createPrincipal(KEY), scopes }
    using load = new LoadShedder()
    const knowing = (parts: object) =>
      new Proxy(parts, { get: (known, property) => Reflect.get(known, property) ?? Reflect.get(unused, property) })
    const principals = new Principals(unused as never, systemClock)
    const ofRuns = { opened: never, isExclusive: true, poisonGuard: new PoisonGuard(systemClock), tasks: unused as never }
    const deps = knowing({
      // What a call counts in its process comes before anything is judged.
      load,
      limits: new CallLimits(new OwnRates(systemClock), () => 1),
      // These judge by themselves.
      principals,
      runs: new AgentRuns(knowing({ principals }) as never, ofRuns),
      workflowRuns: new WorkflowRuns(knowing({ principals }) as never, ofRuns),
    })
    const contextValue = { caller, deps, requestId: 'req', signal: AbortSignal.timeout(10_000) }
    const { errors } = await graphql({ schema, source: operationOn(kind, field), contextValue })
    expect(errors).toMatchObject([{ extensions: { code: 'PERMISSION_DENIED' } }])
  })
})
