import { beforeAll, expect } from 'vitest'
import { addDocument, type Caller, type Json, newCollection } from '../../../support/client.ts'
import type { Running } from './running.ts'

export const ARABIC = `# دليل الموظف

## الإجازات
يحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر. تُقدَّم طلبات الإجازة قبل أسبوعين على الأقل.

## العمل عن بعد
يسمح بالعمل من المنزل يومين في الأسبوع بعد موافقة المدير المباشر.
`
export const ENGLISH = `# Travel policy

## Flights
Employees book economy class for flights under six hours. Longer flights may be booked in business class.

## Expenses
Meals are reimbursed up to 60 dollars a day. Receipts must be handed in within thirty days.
`

/** An Arabic and an English document in one collection of an organization of its own. */
export interface Library {
  readonly caller: Caller
  readonly collection: Json
  search(query: string, more?: Record<string, unknown>): Promise<readonly Json[]>
}

/** Filled before the tests of the describe block that calls it. */
export function openLibrary(running: Running): Library {
  let caller: Caller
  let collection: Json
  beforeAll(async () => {
    caller = await running.newOrganization()
    collection = await newCollection(caller)
    const documents = await Promise.all([
      addDocument(caller, collection.id, 'دليل.md', ARABIC, { department: 'hr' }),
      addDocument(caller, collection.id, 'travel.md', ENGLISH, { department: 'finance' }),
    ])
    for (const document of documents)
      expect(document).toMatchObject({ status: 'ready', stage: null, progress: null, error: null, attempts: 1 })
  }, 90_000)
  return {
    get caller() {
      return caller
    },
    get collection() {
      return collection
    },
    async search(query, more = {}) {
      const { status, body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query, ...more })
      expect([status, body.object]).toEqual([200, 'list'])
      return body.data
    },
  }
}
