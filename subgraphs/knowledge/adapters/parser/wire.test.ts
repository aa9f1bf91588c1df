import { expect, it } from 'vitest'
import { encodePages, PageCounts } from './wire.ts'

/**
 * Returns the reported page counts of an output that arrives in pieces of `size` bytes, and the rest, which is the
 * result.
 */
function receive(output: string, size: number) {
  const reported: string[] = []
  const pages = new PageCounts(300, (done, total) => reported.push(`${done}/${total}`))
  const bytes = Buffer.from(output)
  let result = ''
  for (let at = 0; at < bytes.length; at += size) result += pages.consume(bytes.subarray(at, at + size))
  return { reported, result }
}

const LINES = encodePages(0, 300) + encodePages(16, 300) + encodePages(300, 300)

it('separates page counts from the result at any chunk boundary', () => {
  const result = '{"text":"\\n+1/2\\n"}\n+3/4\n'
  for (const size of [1, 2, 7, 1_000]) {
    expect(receive(LINES + result, size)).toEqual({ reported: ['0/300', '16/300', '300/300'], result })
    expect(receive(result, size)).toEqual({ reported: [], result })
  }
})

it('refuses malformed, decreasing, excessive and endless page counts', () => {
  for (const output of ['+x/3\n', '+1\n', '+4/3\n', '+1/301\n', '+2/3\n+2/3\n', `+${'1'.repeat(40)}`, `+1/2${' '.repeat(40)}\n`])
    for (const size of [1, 1_000]) expect(() => receive(output, size)).toThrow('malformed')
})
