import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CONFORMANCE_VENDORS, catalogOfVendors } from '../../conformance/vendors.ts'
import { addDocument, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { VendorCloud } from '../../support/engines/vendor-cloud.ts'
import { eventually } from '../../support/eventually.ts'
import { NetworkTrace, tracingProblem } from '../../support/processes/network-trace.ts'
import { type Service, type ServiceOptions, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const MODEL = new URL('../../../models/e5-small-ar-en/model.onnx', import.meta.url).pathname
/** onnxruntime as it is by itself: its telemetry looks up its host some 10 s after a session was made. */
const CHATTY = `
  const { InferenceSession } = await import('onnxruntime-node')
  await InferenceSession.create(${JSON.stringify(MODEL)})
  setInterval(() => {}, 1000)`
const CHATTY_MS = 60_000

/** What the embedded model and every vendor are needed for; each vendor's cloud is on loopback. */
const createCatalog = (url: string) =>
  catalogOfVendors(url)
    .replace('engines:', 'engines:\n  embedded: { kind: embedded, badge: local }')
    .replace(
      'models:',
      `models:
  - { id: e5-small-ar-en, engine: embedded, kind: embedding, dimensions: 384, context_window: 512, mark_tokens: 2, query_prefix: "query: ", passage_prefix: "passage: ", cosine_spread: 0.03, price: { input: "0.01" } }
  - { id: extractive, engine: embedded, kind: chat, context_window: 32000, max_output_tokens: 2048, price: { input: "0.01", output: "0.01" } }`,
    )

/**
 * Each part of the service works: embedding, ingestion, search, chat with every vendor, GraphQL over HTTP and a socket.
 */
async function useAll(service: Service): Promise<void> {
  const caller = await newOrganization(createCaller(service, service.key), service)
  const collection = await newCollection(caller)
  for (const [name, text] of [
    ['travel.md', '# Travel\nMeals are reimbursed up to 60 dollars a day.'],
    [
      'page.html',
      '<p>Receipts are due in May.</p><img src="http://192.0.2.1/pixel.png"><link rel="stylesheet" href="http://192.0.2.1/a.css">',
    ],
  ] as const)
    expect(await addDocument(caller, collection.id, name, text)).toMatchObject({ status: 'ready' })
  const { body: found } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'When are receipts due?' })
  expect(found.data).toHaveLength(2)
  for (const model of ['extractive', ...CONFORMANCE_VENDORS.map(({ name }) => `${name}-chat`)]) {
    const completion = await caller.openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Receipts are due in May.\n\nWhen are receipts due?' }],
    })
    expect(completion.choices[0]!.message.content).toContain('May')
  }
  const { data } = await caller.graphql('{ models { id } organization { wallet { available } } }')
  expect(data.organization.wallet.available).toEqual(expect.any(String))
  const socket = caller.socket()
  const variables = { input: { request: { model: 'extractive', messages: [{ role: 'user', content: 'One. Two.\n\nWhat?' }] } } }
  const query = 'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { __typename } }'
  const events: Json[] = []
  for await (const event of socket.iterate({ query, variables })) events.push(event)
  expect(events.at(-1).errors).toBeUndefined()
  await socket.dispose()
}

const problem = tracingProblem()
if (problem !== null && process.env.KIS_REQUIRE_TRACE !== '1')
  describe.skip(`Outbound connections: skipped because ${problem}`, () => it('runs', () => undefined))
else
  describe('Outbound connections', () => {
    let folder: string
    let cloud: VendorCloud
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'kis-test-'))
      cloud = await VendorCloud.start()
      cloud.mock.onMessage(/receipts/, { content: 'In May.' })
    })
    afterAll(async () => {
      await cloud[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    })

    /**
     * A process that would phone home, made after what is watched: once its look-up is seen, one of the service's would
     * have been as well.
     */
    async function chattyIsHeard(name: string): Promise<void> {
      const trace = new NetworkTrace(join(folder, `${name}.chatty`), { unreachable: true })
      const home = join(folder, `${name}.home`)
      mkdirSync(home)
      const [command, ...args] = [...trace.command, process.execPath, '--input-type=module', '--eval', CHATTY]
      const chatty: ChildProcess = spawn(command!, args, {
        env: { PATH: process.env.PATH ?? '', HOME: home, XDG_CACHE_HOME: home },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      const ended = once(chatty, 'exit')
      try {
        await eventually(() => trace.hasBegun && trace.external().length > 0, CHATTY_MS)
        expect(readdirSync(home)).not.toEqual([])
      } finally {
        chatty.kill('SIGKILL')
        await ended
      }
    }

    for (const [name, start] of [
      ['the whole service', startEmbedded],
      ['every role on its own', startFiveProcesses],
    ] as [string, (options: ServiceOptions) => Promise<Service>][]) {
      it(`${name} resolves and contacts nothing outside its configuration, and leaves nothing in the user's home directory`, async () => {
        if (problem !== null) throw new Error(problem)
        const traces = new Map<string, NetworkTrace>()
        const home = join(folder, name)
        mkdirSync(home)
        const service = await start({
          catalog: createCatalog(cloud.url),
          env: { HOME: home, XDG_CACHE_HOME: home },
          under: (process) => {
            const trace = new NetworkTrace(join(folder, `${name}.${process}`))
            traces.set(process, trace)
            return trace.command
          },
        })
        try {
          await useAll(service)
          await chattyIsHeard(name)
        } finally {
          await service.close()
        }
        for (const [process, trace] of traces) expect([process, trace.external()]).toEqual([process, []])
        expect(readdirSync(home)).toEqual([])
      }, 180_000)
    }
  })
