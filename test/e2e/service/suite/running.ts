import { afterAll, beforeAll } from 'vitest'
import { testCatalog } from '../../../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../../support/engines/mock-engine.ts'
import { WebhookReceiver } from '../../../support/engines/webhook-receiver.ts'
import type { Service, ServiceOptions } from '../../../support/processes/service.ts'

/** The service under test, with a vendor and a receiver of webhooks beside it. */
export interface Running {
  readonly service: Service
  readonly mock: MockEngine
  readonly receiver: WebhookReceiver
  readonly operator: Caller
  newOrganization(options?: Parameters<typeof newOrganization>[2]): ReturnType<typeof newOrganization>
}

/** Runs from before the tests of the describe block that calls it until after them. */
export function running(start: (options: ServiceOptions) => Promise<Service>): Running {
  let service: Service
  let mock: MockEngine
  let receiver: WebhookReceiver
  let operator: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    receiver = await WebhookReceiver.start()
    service = await start({ catalog: testCatalog(mock.url), env: { KIS_EGRESS_ALLOW: receiver.host } })
    operator = createCaller(service, service.key)
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    await receiver?.[Symbol.asyncDispose]()
  })
  return {
    get service() {
      return service
    },
    get mock() {
      return mock
    },
    get receiver() {
      return receiver
    },
    get operator() {
      return operator
    },
    newOrganization: (options) => newOrganization(operator, service, options),
  }
}

/** A request to the mock vendor's model. */
export function chat(content: string, more: Record<string, unknown> = {}) {
  return { model: 'mock-chat', messages: [{ role: 'user' as const, content }], ...more }
}
