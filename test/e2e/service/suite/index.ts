import { describe } from 'vitest'
import type { Service, ServiceOptions } from '../../../support/processes/service.ts'
import { agents } from './agents.ts'
import { badInput } from './bad-input.ts'
import { chats } from './chat.ts'
import { documents } from './documents.ts'
import { evaluation } from './evaluation.ts'
import { events } from './events.ts'
import { federation } from './federation.ts'
import { files } from './files.ts'
import { keys } from './keys.ts'
import { openLibrary } from './library.ts'
import { residency } from './residency.ts'
import { running } from './running.ts'
import { search } from './search.ts'
import { searchStages } from './search-stages.ts'
import { streams } from './streams.ts'
import { tenants } from './tenants.ts'
import { usage } from './usage.ts'
import { wallet } from './wallet.ts'
import { workflows } from './workflows.ts'

/** Tests the running product as its users meet it. The tests are the same in one process and in five. */
export function endToEnd(name: string, start: (options: ServiceOptions) => Promise<Service>): void {
  describe(`End to end, ${name}`, () => {
    const service = running(start)
    describe('documents, search and answers', () => {
      const library = openLibrary(service)
      search(library)
      evaluation(library)
      usage(library)
      federation(library)
      agents(library)
      workflows(library)
      files(service, library)
    })
    searchStages(service)
    describe('chat protocol', () => {
      chats(service)
      streams(service)
    })
    events(service)
    keys(service)
    residency(service)
    wallet(service)
    badInput(service)
    documents(service)
    tenants(service)
  })
}
