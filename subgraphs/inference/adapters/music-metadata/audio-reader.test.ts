import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { wav } from '../../../../test/support/sound.ts'
import { createAudioReader } from './audio-reader.ts'

/** Two seconds of a tone each, encoded by FFmpeg 7; `unfinished` as a browser records, without a length. */
const fixture = (name: string) => readFileSync(new URL(`__fixtures__/${name}`, import.meta.url))
const filled = (size: number, byte: number, head: string) => {
  const bytes = Buffer.alloc(size, byte)
  bytes.write(head, 'latin1')
  return bytes
}

it.each([
  // Encoders of MP3, AAC and Opus put silence before and after.
  ['tone.flac', 'flac', 2_000],
  ['tone.mp3', 'mp3', 2_088],
  ['tone.m4a', 'mp4', 2_064],
  ['tone.ogg', 'ogg', 2_007],
  ['tone.webm', 'webm', 2_014],
  ['unfinished.webm', 'webm', null],
])('%s is %s of %s ms', async (name, format, durationMs) => {
  expect(await createAudioReader().read(fixture(name))).toEqual({ format, durationMs })
})

it('a WAV file is as long as it says', async () => {
  expect(await createAudioReader().read(wav(2.5))).toEqual({ format: 'wav', durationMs: 2_500 })
})

it.each<readonly [string, Buffer]>([
  ['nothing', Buffer.alloc(0)],
  ['a byte', Buffer.of(0xff)],
  ['a text', Buffer.from('just a text')],
  ['AAC without a container', Buffer.of(0xff, 0xf1, 0x50, 0x80, 0, 0, 0, 0)],
  ...['OggS', 'fLaC', 'RIFF....WAVE', '....ftyp', '\x1a\x45\xdf\xa3', 'ID3'].map(
    (head) => [`${JSON.stringify(head)} and no sound`, filled(1_000, 0x41, head)] as const,
  ),
])('%s is not sound', async (_name, bytes) => {
  expect(await createAudioReader().read(bytes)).toBeNull()
})

it('a file that holds its parser up is given up, and others are read after it', async () => {
  const reader = createAudioReader(2_000)
  const bad = filled(25 * 1024 * 1024, 0xff, '\xff\xfb')
  expect(await Promise.all([reader.read(bad), reader.read(bad), reader.read(bad)])).toEqual([null, null, null])
  expect(await reader.read(wav(1))).toEqual({ format: 'wav', durationMs: 1_000 })
})
