import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { wav } from '../../../../test/support/data/audio.ts'
import { createAudioReader } from './audio-reader.ts'

const { signal } = new AbortController()
const read = (bytes: Uint8Array) => createAudioReader().read(bytes, 'org_a', signal)

/** Each file is two seconds of a tone, encoded by FFmpeg 7. `unfinished` has no length, like a browser's recording. */
const fixture = (name: string) => readFileSync(new URL(`__fixtures__/${name}`, import.meta.url))
const filled = (size: number, byte: number, head: string) => {
  const bytes = Buffer.alloc(size, byte)
  bytes.write(head, 'latin1')
  return bytes
}

it.each([
  // Encoders of MP3, AAC and Opus add silence before and after.
  ['tone.flac', 'flac', 2_000],
  ['tone.mp3', 'mp3', 2_088],
  ['tone.m4a', 'mp4', 2_064],
  ['tone.ogg', 'ogg', 2_007],
  ['tone.webm', 'webm', 2_014],
  ['unfinished.webm', 'webm', 2_027],
])('%s is %s of %s ms', async (name, format, durationMs) => {
  expect(await read(fixture(name))).toEqual({ format, durationMs })
})

it('a WAV file has the duration that it states', async () => {
  expect(await read(wav(2.5))).toEqual({ format: 'wav', durationMs: 2_500 })
})

/** Creates a WAV file with false header fields: format, channels, rate, bytes per second, bits. */
function createWav(
  seconds: number,
  [format, channels, hertz, bytesPerSecond, bits]: readonly number[],
  ...behind: readonly Buffer[]
): Buffer {
  const file = wav(seconds)
  file.writeUInt16LE(format!, 20)
  file.writeUInt16LE(channels!, 22)
  file.writeUInt32LE(hertz!, 24)
  file.writeUInt32LE(bytesPerSecond!, 28)
  file.writeUInt16LE(bits!, 34)
  return Buffer.concat([file, ...behind])
}
const chunk = (id: string, content: Buffer) => {
  const head = Buffer.alloc(8)
  head.write(id, 'latin1')
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}
it('a compressed WAV file is at least as long as its bytes allow, and a sample-based one ignores trailing bytes', async () => {
  const seconds = 4
  const { length } = wav(seconds)
  // A compressed format at an absurd rate.
  const packed = await read(createWav(seconds, [0x55, 1, 44_100, 0xffffffff, 0]))
  expect(packed!.durationMs).toBeGreaterThanOrEqual(((length - 44) * 8_000) / 448_000)
  const cover = chunk('id3 ', Buffer.alloc(500_000, 1))
  expect(await read(Buffer.concat([wav(seconds), cover]))).toMatchObject({ durationMs: 4_000 })
})

it('a streamed FLAC file is as long as its bytes would be without compression', async () => {
  const file = fixture('tone.flac')
  // The number of samples, in 36 bits of STREAMINFO.
  file.writeUIntBE(file[21]! & 0xf0, 21, 1)
  file.writeUInt32BE(0, 22)
  const { durationMs } = (await read(file))!
  expect(durationMs).toBeGreaterThan(500)
  expect(durationMs).toBeLessThan(2_000)
})

it.each([
  ['tone.flac', 8_600],
  ['tone.mp3', 178_000],
  ['tone.m4a', 138_000],
  ['tone.ogg', 156_000],
  ['tone.webm', 138_000],
])('%s is at least as long as its bytes allow: %s ms', async (name, leastMs) => {
  const more = Buffer.alloc(10_000_000, 0x55)
  if (name === 'tone.m4a') more.write('free', more.writeUInt32BE(more.length))
  const file = Buffer.concat([fixture(name), more])
  expect((await read(file))!.durationMs).toBeGreaterThan(leastMs)
})

it('an image in an audio file does not count as audio', async () => {
  const image = Buffer.concat([Buffer.from('\0image/png\0\x03\0', 'latin1'), Buffer.alloc(1_000_000, 1)])
  const frame = Buffer.alloc(10)
  frame.write('APIC')
  frame.writeUInt32BE(image.length, 4)
  const size = frame.length + image.length
  const tag = Buffer.from([...Buffer.from('ID3'), 3, 0, 0, size >> 21, (size >> 14) & 127, (size >> 7) & 127, size & 127])
  expect(await read(Buffer.concat([tag, frame, image, fixture('tone.mp3')]))).toEqual({ format: 'mp3', durationMs: 2_088 })
})

it.each<readonly [string, Buffer]>([
  ['nothing', Buffer.alloc(0)],
  ['one byte', Buffer.of(0xff)],
  ['a text', Buffer.from('just a text')],
  ['AAC without a container', Buffer.of(0xff, 0xf1, 0x50, 0x80, 0, 0, 0, 0)],
  ...['OggS', 'fLaC', 'RIFF....WAVE', '....ftyp', '\x1a\x45\xdf\xa3', 'ID3'].map(
    (head) => [`${JSON.stringify(head)} and no sound`, filled(1_000, 0x41, head)] as const,
  ),
])('%s is not audio', async (_name, bytes) => {
  expect(await read(bytes)).toBeNull()
})

it('a file that blocks the parser is cancelled, and later files are read', async () => {
  const reader = createAudioReader(4_000)
  const bad = filled(25 * 1024 * 1024, 0xff, '\xff\xfb')
  expect(await Promise.all([bad, bad].map((file) => reader.read(file, 'org_a', signal)))).toEqual([null, null])
  expect(await reader.read(wav(1), 'org_a', signal)).toEqual({ format: 'wav', durationMs: 1_000 })
})

it('files that block the parser delay only their own organization, in a limited queue', async () => {
  const reader = createAudioReader()
  const leaving = new AbortController()
  const bad = filled(25 * 1024 * 1024, 0xff, '\xff\xfb')
  const first = reader.read(bad, 'org_a', signal)
  const waiting = Array.from({ length: 65 }, () => reader.read(bad, 'org_a', leaving.signal))
  await expect(waiting[64]).rejects.toMatchObject({ code: 'service_unavailable' })
  const order = [first.then(() => 'org_a'), reader.read(wav(1), 'org_b', signal).then(() => 'org_b')]
  expect(await Promise.race(order)).toBe('org_b')
  leaving.abort(new Error('left'))
  for (const each of waiting.slice(0, 64)) await expect(each).rejects.toThrow('left')
  expect(await first).toBeNull()
})
