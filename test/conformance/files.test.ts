import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { toFile } from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mockCatalog } from '../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../support/client.ts'
import { type MockEngine, startMockEngine } from '../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'
import { pythonWithOpenai } from './openai-python.ts'

const MIB = 1024 * 1024
/** The plan of the organization takes files of 2,000 bytes. */
const REFUSED = /413.* 2000/

/** Uploads in one request, and prints the error. With its default retries, the client repeats what looks like a break. */
const SCRIPT = `
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2])
try:
    client.files.create(file=("a.txt", b"x" * int(sys.argv[3])), purpose="assistants")
except openai.APIError as error:
    print(getattr(error, "status_code", None), error)
`

let mock: MockEngine
let service: Service
let caller: Caller
beforeAll(async () => {
  mock = await startMockEngine()
  service = await startEmbedded({ catalog: mockCatalog(mock.url) })
  caller = await newOrganization(createCaller(service, service.key), service, { plan: 'tiny' })
})
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
})

const python = await pythonWithOpenai()

for (const sizeBytes of [3 * MIB, 25 * MIB]) {
  it(`the OpenAI client for Node reads why a file of ${sizeBytes} bytes is refused`, async () => {
    const upload = caller.openai.files.create({ file: await toFile(Buffer.alloc(sizeBytes, 'x'), 'a.txt'), purpose: 'assistants' })
    await expect(upload).rejects.toThrow(REFUSED)
  })

  it.skipIf('reason' in python && process.env.KIS_REQUIRE_CLIENTS !== '1')(
    `the OpenAI client for Python reads why a file of ${sizeBytes} bytes is refused`,
    async () => {
      const path = 'python' in python ? python.python : 'python3'
      const { stdout } = await promisify(execFile)(path, ['-c', SCRIPT, `${service.rest}/v1`, caller.key, String(sizeBytes)])
      expect(stdout).toMatch(REFUSED)
    },
  )
}
