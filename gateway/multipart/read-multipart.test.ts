import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { readMultipart } from './read-multipart.ts'

/** A request with so many files, and what comes after them. */
async function request(files: number, fileBytes: number, end?: readonly [string, string]) {
  const names = Array.from({ length: files }, (_, index) => `f${index}`)
  const form = new FormData()
  const variables = Object.fromEntries(names.map((name) => [name, null]))
  form.append('operations', JSON.stringify({ query: '{ a }', variables }))
  form.append('map', JSON.stringify(Object.fromEntries(names.map((name) => [name, [`variables.${name}`]]))))
  for (const name of names) form.append(name, new File(['x'.repeat(fileBytes)], `${name}.txt`))
  if (end) form.append(...end)
  const { headers, body } = new Response(form)
  return {
    headers: { 'content-type': headers.get('content-type')! },
    stream: Readable.from([await buffer(Readable.fromWeb(body as never))]),
  }
}

it.each([1, 300_000])('stores the files of a request one after another: of %i bytes', async (fileBytes) => {
  const { headers, stream } = await request(10, fileBytes)
  let [running, most] = [0, 0]
  const operation = await readMultipart(headers, stream, {
    judge: () => true,
    async store(fileName, bytes) {
      most = Math.max(most, ++running)
      const { length } = await buffer(bytes)
      await setImmediate()
      running--
      return `${fileName} ${length}`
    },
  })
  expect(most).toBe(1)
  expect(Object.values(operation.variables as object)).toEqual(Array.from({ length: 10 }, (_, index) => `f${index}.txt ${fileBytes}`))
})

it('stores no further file of a request that has failed', async () => {
  const { headers, stream } = await request(3, 1, ['other', 'x'])
  const begun: string[] = []
  const read = readMultipart(headers, stream, {
    judge: () => true,
    async store(fileName, bytes) {
      begun.push(fileName)
      await buffer(bytes)
      await setImmediate()
      return fileName
    },
  })
  await expect(read).rejects.toThrow('`other`')
  expect(begun.length).toBeLessThanOrEqual(1)
})
