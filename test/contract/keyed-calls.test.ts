import { storesAndMongo } from '../support/document-stores.ts'
import { keyedCallsContract } from './keyed-calls.ts'

for (const { name, open } of await storesAndMongo('Calls with an idempotency key')) keyedCallsContract(name, open)
