import { createHash } from 'node:crypto'
import type { Client } from 'graphql-ws'
import { afterAll, beforeAll, describe, type ExpectStatic, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import {
  createSelection,
  findBodySchema,
  type GraphQLPosition,
  graphqlPositions,
  innerFields,
  openapi,
  type RestOperation,
  type RootField,
  restPositions,
  rootFields,
  routeName,
} from '../../support/contract.ts'
import { wav } from '../../support/data/audio.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import { type Service, type ServiceOptions, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'
import { createMark, createUnknown, furnish, type Possessions } from '../../support/tenant.ts'
import {
  ARGUMENTS,
  BODIES,
  GRAPHQL_NAMES,
  GRAPHQL_PLAIN,
  INNER_DEPTH,
  type Naming,
  PATHS,
  REST_NAMES,
  REST_PLAIN,
  REST_PLAIN_OF_ONE,
  SUBSCRIPTION_ARGUMENTS,
  WAYS,
} from '../../support/tenant-positions.ts'

/** Selected of what operations give. */
const DEPTH = 1
/** Headers that no two answers share. */
const VOLATILE_HEADERS = new Set(['date', 'x-request-id', 'request-id', 'openai-processing-ms', 'mcp-session-id', 'x-kis-stream-id'])
/** Subscriptions without an end. */
const ENDLESS = new Set(['usageRecorded', 'walletChanged', 'documentUpdated', 'runEnded'])
/** How long an endless subscription may still be refused after another of the same socket has told an event, in ms. */
const STILL_REFUSED_MS = 300

const HOW_TO_ADD = 'Say in test/support/tenant-positions.ts what it names, or that it names nothing.'

/** What a place of a route names; undefined: nobody has said. */
function restNamings(operation: RestOperation, at: string): readonly Naming[] | undefined {
  const name = routeName(operation)
  if (at.startsWith('path.')) {
    const parameter = `{${at.slice('path.'.length)}}`
    return PATHS[operation.path.slice(0, operation.path.indexOf(parameter) + parameter.length)]
  }
  const own = REST_NAMES[`${name} ${at}`]
  if (own) return own
  if (REST_PLAIN_OF_ONE.has(`${name} ${at}`)) return []
  return REST_NAMES[at] ?? (REST_PLAIN.has(at) ? [] : undefined)
}

const graphqlNamings = ({ coordinate }: GraphQLPosition): readonly Naming[] | undefined =>
  GRAPHQL_NAMES[coordinate] ?? (GRAPHQL_PLAIN.has(coordinate) ? [] : undefined)

const toArguments = ({ operation, name }: RootField) =>
  (operation === 'subscription' ? SUBSCRIPTION_ARGUMENTS[name] : undefined) ?? ARGUMENTS[name]

describe('Tenant matrix', () => {
  for (const operation of openapi.operations) {
    if (operation.operation.security?.length === 0) continue
    it(`has a row for every parameter of ${routeName(operation)}`, () => {
      const missing = restPositions(operation).filter(({ at }) => restNamings(operation, at) === undefined)
      expect(
        missing.map(({ at }) => `${routeName(operation)} ${at}`),
        HOW_TO_ADD,
      ).toEqual([])
      if (findBodySchema(operation))
        expect(BODIES, 'Add a valid body to BODIES in test/support/tenant-positions.ts.').toHaveProperty(operation.operation.operationId)
    })
  }
  for (const root of rootFields)
    it(`has a row for every argument of the ${root.operation} ${root.name}`, () => {
      const positions = graphqlPositions(root.operation, root.field)
      expect(
        positions.filter((position) => graphqlNamings(position) === undefined).map(({ coordinate }) => coordinate),
        HOW_TO_ADD,
      ).toEqual([])
      if (root.field.args.length > 0 && positions.length > 0)
        expect(toArguments(root), `Add valid arguments of ${root.name} to ARGUMENTS in test/support/tenant-positions.ts.`).toBeDefined()
    })
  for (const { type, field } of innerFields)
    it(`has a row for every argument of ${type.name}.${field.name}`, () => {
      const positions = graphqlPositions(type.name, field)
      expect(
        positions.filter((position) => graphqlNamings(position) === undefined).map(({ coordinate }) => coordinate),
        HOW_TO_ADD,
      ).toEqual([])
      if (positions.length > 0)
        expect(WAYS, `Say in WAYS of test/support/tenant-positions.ts how one comes to it.`).toHaveProperty([`${type.name}.${field.name}`])
    })

  it('has no row outside the contract', () => {
    const rest = openapi.operations.flatMap((operation) =>
      restPositions(operation).flatMap(({ at }) => [at, `${routeName(operation)} ${at}`]),
    )
    const graphql = [
      ...rootFields.flatMap(({ operation, field }) => graphqlPositions(operation, field)),
      ...innerFields.flatMap(({ type, field }) => graphqlPositions(type.name, field)),
    ].map(({ coordinate }) => coordinate)
    const stale = [...Object.keys(REST_NAMES), ...REST_PLAIN, ...REST_PLAIN_OF_ONE].filter((row) => !rest.includes(row))
    expect([...stale, ...[...Object.keys(GRAPHQL_NAMES), ...GRAPHQL_PLAIN].filter((row) => !graphql.includes(row))]).toEqual([])
  })
})

interface Tenant extends Caller {
  readonly organizationId: string
  readonly has: Possessions
  /** Stands in all of its own texts. */
  readonly mark: string
}

interface MatrixOptions {
  /** Asks at every place, by each key. Otherwise each operation is asked at its first place. */
  readonly isWhole: boolean
}

function matrix(name: string, start: (options: ServiceOptions) => Promise<Service>, { isWhole }: MatrixOptions): void {
  const chosen = <Row>(rows: readonly Row[], toName: (row: Row) => string) =>
    isWhole ? rows : [...new Map(rows.toReversed().map((row) => [toName(row), row])).values()].reverse()
  // Each test has tenants of its own.
  describe.concurrent(`Isolation of another organization's IDs, ${name}`, () => {
    let mock: MockEngine
    let receiver: WebhookReceiver
    let memberIssuer: MemberIssuer
    let service: Service
    let tenants = 0
    beforeAll(async () => {
      mock = await startMockEngine()
      receiver = await WebhookReceiver.start()
      memberIssuer = await MemberIssuer.start()
      service = await start({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host, ...memberIssuer.env } })
    }, 120_000)
    afterAll(async () => {
      await service?.close()
      await mock?.[Symbol.asyncDispose]()
      await receiver?.[Symbol.asyncDispose]()
      await memberIssuer?.[Symbol.asyncDispose]()
    })

    async function newTenant(): Promise<Tenant> {
      const caller = await newOrganization(createCaller(service, service.key), service)
      const tenant = String.fromCharCode(97 + tenants++)
      return { ...caller, has: await furnish(caller, tenant, receiver, memberIssuer), mark: createMark(tenant) }
    }

    async function send(key: string, method: string, path: string, body: Json, headers: Record<string, string> = {}): Promise<Seen> {
      const form = path === '/v1/audio/transcriptions' || path.endsWith('/parts') ? toForm(body, path) : undefined
      const tus = path.startsWith('/v1/uploads/tus') && TUS_HEADERS
      const response = await fetch(`${service.rest}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          accept: 'application/json, text/event-stream',
          'x-request-id': 'the-same',
          ...(body !== undefined && !form && { 'content-type': 'application/json' }),
          ...tus,
          ...headers,
        },
        ...(body !== undefined && { body: form ?? JSON.stringify(body) }),
      })
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
    const graphqlRequest = async (key: string, query: string, variables: Json): Promise<Seen> => {
      const response = await fetch(service.graphql, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables }),
      })
      return { status: response.status, headers: response.headers, text: await response.text() }
    }

    /** A collection has one evaluation at a time: the next one begins as the one before did. */
    const evaluationsEnd = (tenant: Tenant) =>
      eventually(async () => {
        const { body } = await tenant.rest('GET', `/v1/collections/${tenant.has.collection}/evaluations?limit=1`)
        return body.data.every(({ status }: Json) => status !== 'running')
      }, 30_000)

    /** All that an organization can read of its own, once nothing of it changes any more. */
    async function atRest(tenant: Tenant): Promise<Json> {
      let last = ''
      await eventually(async () => {
        const before = last
        // Events of what has just been done are delivered within this.
        await new Promise((resolve) => setTimeout(resolve, before === '' ? 0 : 2_500))
        const all: Record<string, string> = {}
        for (const operation of openapi.operations) {
          if (operation.method !== 'GET' || operation.operation.security?.length === 0 || operation.path.endsWith('/events')) continue
          const { path } = createRequest(operation, tenant.has)
          const { text } = await send(tenant.key, 'GET', path, undefined)
          // An erasure ends by itself after 2 minutes. The use of a key, as of the owner's here, is noted every 5 minutes.
          const stableText = path.includes('/erasures') ? text.replaceAll(/"ended_at":(?:null|\d+)/g, '') : text
          all[path] = stableText.replaceAll(/"last_used_at":\d+/g, '"last_used_at":«time»')
        }
        last = JSON.stringify(all)
        return last === before
      }, 60_000)
      return JSON.parse(last)
    }

    /**
     * Both questions are answered alike, and the answers hold nothing of the owner. `expect` is the test's own, as
     * others run at once.
     */
    async function expectAlike(
      expect: ExpectStatic,
      owner: Tenant,
      what: string,
      ownerId: string,
      sendWith: (id: string) => Promise<Seen>,
    ): Promise<void> {
      const unknown = createUnknown(ownerId)
      const [theirs, nobodys] = [await sendWith(ownerId), await sendWith(unknown)]
      expect.soft(plain(theirs, ownerId), what).toEqual(plain(nobodys, unknown))
      expectNothingOf(expect, owner, theirs, what, ownerId)
    }

    function expectNothingOf(expect: ExpectStatic, owner: Tenant, { status, text }: Seen, what: string, ownerId: string): void {
      const rest = text.replaceAll(ownerId, '')
      expect.soft(rest, what).not.toContain(owner.mark)
      // An error may name what else was sent.
      const others = status < 300 ? listIds(owner) : []
      for (const id of others) expect.soft(rest, what).not.toContain(id)
    }

    it('treats them like unknown ones by REST and MCP', async ({ expect }) => {
      const [owner, asker] = [await newTenant(), await newTenant()]
      const narrow: string = (await asker.rest('POST', '/v1/keys', { name: 'narrow', scopes: ['inference'] })).body.key
      for (const { operation, at, more } of restRows().filter((row) => row.at === 'header.idempotency-key')) {
        const { path, body, headers } = createRequest(operation, owner.has, at, owner.has.idempotencyKey, undefined, more)
        const first = await send(owner.key, operation.method, path, body, headers)
        expect(first.status, `${routeName(operation)}: ${first.text}`).toBe(200)
      }
      const before = await atRest(owner)
      for (const row of chosen(restRows(), (each) => routeName(each.operation))) {
        const { operation, at, naming, more } = row
        const ownerId = owner.has[naming.kind]
        for (const key of isWhole ? [asker.key, narrow] : [asker.key]) {
          const sendWith = async (id: string, method: string = operation.method) => {
            if (operation.operation.operationId === 'startEvaluation') await evaluationsEnd(asker)
            const request = createRequest(
              operation,
              asker.has,
              at,
              naming.as ? naming.as(id, asker.has) : id,
              row.usesOwnerPath ? owner.has : undefined,
              more,
            )
            return send(key, method, request.path, request.body, request.headers)
          }
          await expectAlike(expect, owner, `${routeName(operation)} ${at} ${naming.kind}`, ownerId, sendWith)
          if (operation.method === 'GET')
            await expectAlike(expect, owner, `HEAD ${operation.path} ${at}`, ownerId, (id) => sendWith(id, 'HEAD'))
        }
      }
      for (const operation of openapi.operations.filter((each) => each.method === 'GET' && restPositions(each).length === 0))
        expectNothingOf(
          expect,
          owner,
          await send(asker.key, 'GET', createRequest(operation, asker.has).path, undefined),
          routeName(operation),
          '',
        )
      expect(await atRest(owner)).toEqual(before)
    }, 600_000)

    it('treats them like unknown ones by GraphQL', async ({ expect }) => {
      const [owner, asker] = [await newTenant(), await newTenant()]
      const narrow: string = (await asker.rest('POST', '/v1/keys', { name: 'narrow', scopes: ['inference'] })).body.key
      for (const { root, position } of graphqlRows().filter(({ position }) => position.at === 'input.idempotencyKey')) {
        if (root.operation === 'subscription') continue
        const { query, variables } = createOperation(root, owner.has, position.at, owner.has.idempotencyKey)
        await graphqlRequest(owner.key, query, variables)
      }
      const before = await atRest(owner)
      const sockets = new Map([asker.key, narrow].map((key) => [key, createCaller(service, key).socket()]))
      for (const { root, position, naming } of chosen(graphqlRows(), (each) => `${each.root.operation} ${each.root.name}`)) {
        const ownerId = owner.has[naming.kind]
        for (const key of isWhole ? [asker.key, narrow] : [asker.key]) {
          const sendWith = async (id: string) => {
            if (root.name === 'startEvaluation') await evaluationsEnd(asker)
            const { query, variables } = createOperation(root, asker.has, position.at, naming.as ? naming.as(id, asker.has) : id)
            return root.operation === 'subscription'
              ? transcript(sockets.get(key)!, root, query, variables, asker.has)
              : graphqlRequest(key, query, variables)
          }
          await expectAlike(expect, owner, `${root.operation} ${root.name} ${position.at} ${naming.kind}`, ownerId, sendWith)
        }
      }
      // It has stored no id of the owner's, which its own lists would show.
      const reader = await newTenant()
      for (const { type, field } of innerFields)
        for (const position of graphqlPositions(type.name, field))
          for (const naming of graphqlNamings(position) ?? [])
            await expectAlike(expect, owner, `${type.name}.${field.name}(${position.at})`, owner.has[naming.kind], (id) => {
              const selected = `${field.name}(${position.at}: ${JSON.stringify(naming.as ? naming.as(id, reader.has) : id)}) ${createSelection(field.type, INNER_DEPTH)}`
              return graphqlRequest(
                reader.key,
                WAYS[`${type.name}.${field.name}`]!(reader.has).replace('FIELD', () => selected),
                {},
              )
            })
      await Promise.all([...sockets.values()].map((client) => client.dispose()))
      expect(await atRest(owner)).toEqual(before)
    }, 600_000)

    it('treats them like unknown ones for entities and persisted operations', async ({ expect }) => {
      const [owner, asker] = [await newTenant(), await newTenant()]
      for (const [typename, kind] of [
        ['Collection', 'collection'],
        ['File', 'file'],
        ['Document', 'document'],
        ['Agent', 'agent'],
        ['ApiKey', 'key'],
        ['Member', 'member'],
        ['Invitation', 'invitation'],
        ['Organization', 'organization'],
      ] as const)
        await expectAlike(expect, owner, `_entities ${typename}`, owner.has[kind], (id) =>
          graphqlRequest(asker.key, 'query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }', {
            r: [{ __typename: typename, id }],
          }),
        )
      const query = `{ collection(id: "${owner.has.collection}") { name } }`
      const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
      const persisted = (key: string, hash: string, text?: string) =>
        fetch(service.graphql, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ query: text, extensions: { persistedQuery: { version: 1, sha256Hash: hash } } }),
        }).then(async (response) => ({ status: response.status, headers: response.headers, text: await response.text() }))
      expect((await persisted(owner.key, sha256(query), query)).text).toContain(owner.mark)
      await expectAlike(expect, owner, 'a persisted operation', sha256(query), (hash) => persisted(asker.key, hash))
    }, 120_000)

    it('sends no events, streams or webhooks of one organization to the other', async ({ expect }) => {
      const [owner, asker] = [await newTenant(), await newTenant()]
      const heard: string[] = []
      const client = asker.socket()
      const listen = (query: string, into = heard) =>
        client.subscribe(
          { query },
          { next: (value) => into.push(JSON.stringify(value)), error: (e) => into.push(JSON.stringify(e)), complete() {} },
        )
      listen('subscription { documentUpdated(after: "0") { documentId document { id collection { id name } file { name } } } }')
      const refused: string[] = []
      listen(`subscription { documentUpdated(collectionId: "${owner.has.collection}", after: "0") { documentId } }`, refused)
      listen('subscription { usageRecorded(after: "0") { cursor record { id requestId } } }')
      listen('subscription { walletChanged(after: "0") { cursor balance } }')
      const endpoint = receiver.at('/listening')
      const types = ['document.updated', 'document.deleted', 'usage.recorded', 'wallet.changed', 'agent_run.ended', 'workflow_run.ended']
      const known = types.filter((type) => type in openapi.events)
      endpoint.secret = (await asker.rest('POST', '/v1/webhooks', { url: endpoint.url, event_types: known })).body.secret

      const created = await addDocument(owner, owner.has.collection, 'told.md', `# ${owner.mark}\nA new text.`)
      await owner.rest('POST', `/v1/agents/${owner.has.agent}/runs`, { input: 'Hello' })
      await owner.rest('DELETE', `/v1/collections/${owner.has.collection}/documents/${created.id}`)
      const mine = await addDocument(asker, asker.has.collection, 'mine.md', '# Mine\nA text of mine.')
      await eventually(() => heard.some((line) => line.includes(mine.id)), 30_000)
      await eventually(() => endpoint.received.some(({ data }) => data.document_id === mine.id), 30_000)
      await client.dispose()
      expect(refused).toEqual([expect.stringContaining('NOT_FOUND')])
      const all = heard.join('\n') + JSON.stringify(endpoint.received)
      for (const id of [created.id, created.file_id, ...listIds(owner)]) expect(all).not.toContain(id)
      expect(all).not.toContain(owner.mark)
      expect(endpoint.faults).toEqual([])
    }, 120_000)
  })
}

const listIds = ({ has }: Tenant) => Object.values(has).filter((id) => id.length > 20)

interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** What the query of a request must say beside the place that is looked at. */
const NEEDED: Readonly<Record<string, string>> = {
  summarizeUsage: 'group_by=model',
  getResidencyEffects: 'policy=local_only',
  listAllDocuments: 'status=ready',
}
/** What makes a request one of the protocol. */
const TUS_HEADERS = {
  'tus-resumable': '1.0.0',
  'upload-offset': '0',
  'upload-length': '1',
  'content-type': 'application/offset+octet-stream',
}

function toForm(body: Json, path: string): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries<string>(body)) form.append(name, value)
  form.append(path.endsWith('/parts') ? 'data' : 'file', new File([wav(2)], 'sound.wav'))
  return form
}

interface RestRow {
  readonly operation: RestOperation
  readonly at: string
  readonly naming: Naming
  /** The path's other parameters are the owner's too. */
  readonly usesOwnerPath: boolean
  readonly more: object
}

/** What makes a thing by a code of its own comes last: from then on the code is the asker's too. */
function restRows(): RestRow[] {
  const rows = openapi.operations.flatMap((operation) => {
    const paths = operation.operation.parameters.filter((parameter) => parameter.in === 'path')
    const streams = plainProperties(operation).has('stream') && operation.path !== '/v1/audio/transcriptions'
    return restPositions(operation).flatMap(({ at }) =>
      (restNamings(operation, at) ?? []).flatMap((naming) =>
        (at.startsWith('path.') && paths.length > 1 ? [false, true] : [false]).flatMap((usesOwnerPath) =>
          (streams ? [{}, { stream: true }] : [{}]).map((more) => ({ operation, at, naming, usesOwnerPath, more })),
        ),
      ),
    )
  })
  return rows.toSorted((a, b) => Number(a.naming.kind.endsWith('Code')) - Number(b.naming.kind.endsWith('Code')))
}

const plainProperties = (operation: RestOperation) => new Set(Object.keys(findBodySchema(operation)?.schema.properties ?? {}))

/** A valid request of what one owns, in which one place is another's. */
function createRequest(operation: RestOperation, own: Possessions, at?: string, value?: unknown, owner?: Possessions, more: object = {}) {
  let { path } = operation
  for (const parameter of operation.operation.parameters.filter((each) => each.in === 'path')) {
    const isTarget = at === `path.${parameter.name}`
    const [naming] = restNamings(operation, `path.${parameter.name}`)!
    path = path.replace(`{${parameter.name}}`, String(isTarget ? value : (owner ?? own)[naming!.kind]))
  }
  const [where, ...steps] = at?.split('.') ?? []
  const name = steps.join('.')
  if (where === 'query') path += `?${name}=${encodeURIComponent(String(value))}`
  const needed = NEEDED[operation.operation.operationId]
  if (needed) path += `${path.includes('?') ? '&' : '?'}${needed}`
  const defaultBody = BODIES[operation.operation.operationId]?.(own)
  const body: Json = at === 'body' ? value : where === 'body' ? placed(defaultBody, name, value) : defaultBody
  // One key is for one request: each operation has its own.
  const prefix = name === 'idempotency-key' ? `${operation.operation.operationId}${Object.keys(more)}-` : ''
  const headers: Record<string, string> = where === 'header' ? { [name]: `${prefix}${value}` } : {}
  return { path, body: body && { ...body, ...more }, headers }
}

/** The body with a value at `messages[].content[]`. A question that is there beside its other form goes. */
function placed(body: Json, at: string, value: unknown): Json {
  const [step, ...rest] = at.split('.')
  const field = step!.replace('[]', '')
  if (field === 'messages' && typeof body.input === 'string') delete body.input
  const inner = rest.length > 0 ? placed({ role: 'user', content: 'Hello' }, rest.join('.'), value) : value
  return { ...body, [field]: step!.endsWith('[]') ? [inner] : inner }
}

function graphqlRows() {
  const rows = rootFields.flatMap((root) =>
    graphqlPositions(root.operation, root.field).flatMap((position) =>
      (graphqlNamings(position) ?? []).map((naming) => ({ root, position, naming })),
    ),
  )
  return rows.toSorted((a, b) => Number(a.naming.kind.endsWith('Code')) - Number(b.naming.kind.endsWith('Code')))
}

function createOperation({ operation, name, field }: RootField, own: Possessions, at: string, value: unknown) {
  const root = { operation, name, field }
  const variables = structuredClone(toArguments(root)!(own))
  const steps = at.split('.')
  const last = steps.pop()!
  let target = variables
  for (const step of steps) target = target[step] ??= {}
  target[last] = last === 'idempotencyKey' ? `${operation}-${name}-${value}` : value
  const provided = field.args.filter((argument) => argument.name in variables)
  const declared = provided.map((argument) => `$${argument.name}: ${argument.type}`).join(', ')
  const passed = provided.map((argument) => `${argument.name}: $${argument.name}`).join(', ')
  return { query: `${operation} Matrix(${declared}) { ${name}(${passed}) ${createSelection(field.type, DEPTH)} }`, variables }
}

/** What a subscription says: to its end, or until the asker's own past has been told on the same socket. */
async function transcript(client: Client, { name }: RootField, query: string, variables: Json, own: Possessions): Promise<Seen> {
  const said: string[] = []
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const stop = client.subscribe(
    { query, variables },
    {
      next: (value) => said.push(JSON.stringify(value)),
      error: (error) => {
        said.push(JSON.stringify(error))
        resolve()
      },
      complete: resolve,
    },
  )
  const acceptAfterDelay = () => setTimeout(resolve, STILL_REFUSED_MS)
  const stopOwn = ENDLESS.has(name)
    ? client.subscribe(
        {
          query: 'subscription ($id: ID) { documentUpdated(collectionId: $id, after: "0") { documentId } }',
          variables: { id: own.collection },
        },
        { next: acceptAfterDelay, error: acceptAfterDelay, complete: () => {} },
      )
    : undefined
  await ended
  stopOwn?.()
  stop()
  return { status: 200, headers: new Headers(), text: said.join('\n') }
}

/**
 * An answer without what it was asked for, and without what no two answers share. What has been made has an id and a
 * time of its own.
 */
function plain({ status, headers, text }: Seen, ownerId: string) {
  // Anthropic's errors tell the id of the request.
  const body = text.replaceAll(ownerId, '«given»').replace(/"request_id":"req_[0-9a-f]{32}"/, '"request_id":"«id»"')
  const shared = [...headers].filter(([name]) => !VOLATILE_HEADERS.has(name) && !(status < 300 && name === 'content-length'))
  return { status, headers: Object.fromEntries(shared), body: status < 300 ? withoutNew(withoutMoments(body)) : body }
}

/** Events show their run as it is when they are told, which is another moment each time. */
const withoutMoments = (text: string) =>
  text.replaceAll(/^(data: )?(\{.*\})$/gm, (_line, data: string | undefined, json: string) => {
    const event = JSON.parse(json, (key, value) => (key === 'run' ? undefined : value))
    return `${data ?? ''}${JSON.stringify(event)}`
  })

const withoutNew = (text: string) =>
  text
    .replaceAll(/\b[a-z]+_[0-9a-f]{32}\b/g, '«id»')
    .replaceAll(/\b(?:kis_live|whsec)_[\w+/=]+/g, '«secret»')
    .replaceAll(/"last4":"\w{4}"/g, '«secret»')
    .replaceAll(/\b20\d\d-\d\d-\d\dT[\d:.]+Z/g, '«time»')
    .replaceAll(/\b1[789]\d{8}\b/g, '«time»')

matrix('one process', startEmbedded, { isWhole: true })
// The rules are the same code. What differs is the stores, which every operation asks.
await onBothEngines('Tenant matrix', (start) =>
  matrix('five processes', (options) => start({ ...options, replicas: {} }), { isWhole: soaking }),
)
