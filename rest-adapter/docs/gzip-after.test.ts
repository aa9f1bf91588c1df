import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { gzipAfter } from './gzip-after.ts'

it('compresses any end after a beginning that was compressed before', () => {
  fc.assert(
    fc.property(fc.string(), fc.array(fc.string(), { minLength: 1, maxLength: 3 }), (beginning, ends) => {
      const gzip = gzipAfter(Buffer.from(beginning))
      for (const end of ends) expect(gunzipSync(gzip(Buffer.from(end))).equals(Buffer.from(beginning + end))).toBe(true)
    }),
  )
})
