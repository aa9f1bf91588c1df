import { expect, it } from 'vitest'
import { toCsv } from './csv.ts'

it('exports records that a spreadsheet reads as text', () => {
  const csv = toCsv([
    {
      id: 'use_1',
      at: '2026-11-23T10:00:00Z',
      operation: 'CHAT_COMPLETION',
      amount: '0.000001',
      source: 'COUNTED',
      requestId: 'req_1',
      rateCardVersion: '1',
      model: { id: 'extractive' },
      apiKey: { id: 'key_1', name: '=HYPERLINK("https://x")' },
      quantities: [{ unit: 'INPUT_TOKENS', quantity: 12, rate: '0' }],
    },
  ])
  expect(csv.split('\r\n')).toEqual([
    'id,at,operation,model,api_key,amount_usd,source,request_id,rate_card,quantities',
    `use_1,2026-11-23T10:00:00Z,CHAT_COMPLETION,extractive,"'=HYPERLINK(""https://x"")",0.000001,COUNTED,req_1,1,INPUT_TOKENS=12`,
  ])
})
