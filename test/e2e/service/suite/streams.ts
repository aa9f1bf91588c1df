import { toFile } from 'openai'
import { expect, it } from 'vitest'
import { balancedWallet } from '../../../support/client.ts'
import { wav } from '../../../support/data/audio.ts'
import { TRANSCRIPT_DELTAS } from '../../../support/engines/mock-engine.ts'
import { eventually } from '../../../support/eventually.ts'
import { chat, type Running } from './running.ts'

/** Fills 25 MiB all but a few kilobytes. */
const LONGEST_AUDIO_SECONDS = 1_638

/** Streamed answers, whole and broken off. */
export function streams(running: Running): void {
  it('streams, with usage only on request', async () => {
    const caller = await running.newOrganization()
    for (const include of [false, true]) {
      const stream = await caller.openai.chat.completions.create({
        ...chat('hi'),
        stream: true,
        ...(include && { stream_options: { include_usage: true } }),
      })
      const chunks = []
      for await (const chunk of stream) chunks.push(chunk)
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hello from the mock مرحبا')
      expect(chunks.filter((chunk) => chunk.usage)).toHaveLength(include ? 1 : 0)
    }
    expect((await balancedWallet(caller)).balance_usd).toBe('9.999944')
  })

  it('stops the vendor when its client disconnects, and charges what was produced', async () => {
    const caller = await running.newOrganization()
    const { abandoned } = running.mock
    const stream = await caller.openai.chat.completions.create({ ...chat('please hang'), stream: true })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
    await eventually(() => running.mock.abandoned === abandoned + 1)
    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0')
    const { body } = await caller.rest('GET', '/v1/usage')
    expect(body.data[0]).toMatchObject({ source: 'counted', output_tokens: expect.any(Number) })
    await balancedWallet(caller)
  })

  it('streams the transcription of the largest permitted file', async () => {
    const caller = await running.newOrganization()
    const file = await toFile(wav(LONGEST_AUDIO_SECONDS), 'a day.wav')
    const deltas = []
    for await (const event of await caller.openai.audio.transcriptions.create({ model: 'mock-speech', file, stream: true }))
      if (event.type === 'transcript.text.delta') deltas.push(event.delta)
    expect(deltas).toEqual(TRANSCRIPT_DELTAS)
    const { data } = (await caller.rest('GET', '/v1/usage?limit=1')).body
    expect(data).toMatchObject([{ operation: 'transcription', audio_seconds: LONGEST_AUDIO_SECONDS }])
    await balancedWallet(caller)
  })

  it('reports a broken stream in the stream, without [DONE]', async () => {
    const caller = await running.newOrganization()
    const response = await fetch(`${running.service.rest}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(chat('please cut', { stream: true })),
    })
    const text = await response.text()
    expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/event-stream')])
    expect(text).toContain('Hello')
    expect(text).toContain('"code":"engine_error"')
    expect(text).not.toContain('[DONE]')
    await balancedWallet(caller)
  })
}
