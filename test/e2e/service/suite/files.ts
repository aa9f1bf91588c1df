import { expect, it } from 'vitest'
import type { Json } from '../../../support/client.ts'
import { ARABIC, ENGLISH, type Library } from './library.ts'
import type { Running } from './running.ts'

/** The bytes of files. */
export function files(running: Running, library: Library): void {
  it('returns the bytes of a file', async () => {
    const { caller } = library
    const { body } = await caller.rest('GET', '/v1/files?limit=1')
    const content = await fetch(`${running.service.rest}/v1/files/${body.data[0].id}/content`, {
      headers: { authorization: `Bearer ${caller.key}` },
    })
    expect([ARABIC, ENGLISH]).toContain(await content.text())
  })

  it('downloads a file at the path from GraphQL, without a key', async () => {
    const { caller } = library
    const { body } = await caller.rest('GET', '/v1/files?limit=1')
    const { id } = body.data[0]
    const query = 'query ($id: ID!) { fileDownload(id: $id) { path file { sizeBytes } } }'
    const { path, file } = (await caller.graphql(query, { id })).data.fileDownload
    const get = (where: string, init?: RequestInit) => fetch(new URL(where, running.service.graphql), init)
    const whole = await get(path)
    expect([whole.status, whole.headers.get('content-length')]).toEqual([200, String(file.sizeBytes)])
    const text = await whole.text()
    expect([ARABIC, ENGLISH]).toContain(text)
    const range = `bytes=${file.sizeBytes - 5}-`
    const parts = [get(path, { headers: { range } })]
    const headers = { authorization: `Bearer ${caller.key}`, range }
    parts.push(fetch(`${running.service.rest}/v1/files/${id}/content`, { headers }))
    for (const part of await Promise.all(parts))
      expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, Buffer.from(text).subarray(-5)])
    const head = await get(path, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(file.sizeBytes)])
    for (const forged of ['/bytes', path.slice(0, -3), `${path}x`]) {
      const refused = await get(forged)
      expect([refused.status, ((await refused.json()) as Json).errors[0].extensions.code]).toEqual([403, 'PERMISSION_DENIED'])
    }
  })
}
