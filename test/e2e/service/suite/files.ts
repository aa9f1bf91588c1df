import { expect, it } from 'vitest'
import { ARABIC, ENGLISH, type Library } from './library.ts'
import type { Running } from './running.ts'

/** The bytes of files. */
export function files(running: Running, library: Library): void {
  it('gives the bytes of a file back', async () => {
    const { caller } = library
    const { body } = await caller.rest('GET', '/v1/files?limit=1')
    const content = await fetch(`${running.service.rest}/v1/files/${body.data[0].id}/content`, {
      headers: { authorization: `Bearer ${caller.key}` },
    })
    expect([ARABIC, ENGLISH]).toContain(await content.text())
  })
}
