import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { wav } from '../../../../test/support/data/sound.ts'
import { createAudioReader } from './audio-reader.ts'
import { measure } from './frames/measure.ts'

const { signal } = new AbortController()
const read = (bytes: Uint8Array) => createAudioReader().read(bytes, 'org_a', signal)

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
  ['unfinished.webm', 'webm', 2_020],
])('%s is %s of %s ms', async (name, format, durationMs) => {
  expect(await read(fixture(name))).toEqual({ format, durationMs })
})

it('a WAV file is as long as it says', async () => {
  expect(await read(wav(2.5))).toEqual({ format: 'wav', durationMs: 2_500 })
})

/** With all that a header says of the length made next to nothing. */
const lies: Readonly<Record<string, (file: Buffer) => void>> = {
  'tone.flac': (file) => file.writeUIntBE(1, 22, 4),
  'tone.mp3': (file) => file.writeUInt32BE(1, file.indexOf('Info') + 8),
  'tone.m4a': (file) => {
    for (const box of ['mvhd', 'mdhd']) file.writeUInt32BE(1, file.indexOf(box) + 20)
    file.writeUInt32BE(1, file.indexOf('stts') + 16)
  },
  'tone.ogg': (file) => {
    for (let at = 0; at !== -1; at = file.indexOf('OggS', at + 1))
      if (file[at + 6] !== 0 || file[at + 7] !== 0) file.writeBigUInt64LE(1n, at + 6)
  },
  // Its length, and the scale of all of its times.
  'tone.webm': (file) => {
    file.writeDoubleBE(1, file.indexOf(Buffer.from([0x44, 0x89, 0x88])) + 3)
    file.writeUIntBE(1, file.indexOf(Buffer.from([0x2a, 0xd7, 0xb1, 0x83])) + 4, 3)
  },
}

it.each(Object.entries(lies))('%s is as long as its frames, whatever its header says', async (name, lie) => {
  const [honest, file] = [fixture(name), fixture(name)]
  lie(file)
  expect(file.equals(honest)).toBe(false)
  const { durationMs } = (await read(file))!
  expect(durationMs).toBeGreaterThanOrEqual(2_000)
  expect(durationMs).toBeLessThanOrEqual(2_200)
})

it.each([
  ['mp4', 'tone.m4a', 'mp4a', 'Opus', 33],
  ['mp4', 'tone.m4a', 'mp4a', 'samr', 33],
  ['webm', 'tone.webm', 'A_OPUS', 'A_AAC\0', 101],
] as const)(
  '%s with packets of a codec that is not read (%s, %s as %s) is as long as so many usually are',
  (format, name, codec, other, packets) => {
    const file = fixture(name)
    lies[name]!(file)
    file.write(other, file.indexOf(codec, file.indexOf('stsd') + 1), 'latin1')
    expect(measure(file, format).framesMs).toBe(packets * 20)
  },
)

it('a WAV file is as long as its samples', async () => {
  const file = wav(2.5)
  file.writeUInt32LE(16, 40)
  expect(await read(file)).toEqual({ format: 'wav', durationMs: 2_500 })
})

/** A WAV file of other facts than it has: format, channels, rate, bytes a second, bits. */
function makeWav(
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
/** Infinite: it is refused, as nothing that is known to be sound. */
const measureLength = async (file: Buffer) => (await read(file))?.durationMs ?? Number.POSITIVE_INFINITY

it('sound that decoders hear and a header hides is heard here too', async () => {
  const ogg = fixture('tone.ogg')
  // Links of a chain are heard one after the other, whether they say that they are others or not.
  const other = fixture('tone.ogg')
  for (let at = 0; at !== -1; at = other.indexOf('OggS', at + 1)) other.writeUInt32LE(77, at + 14)
  for (const link of [ogg, other]) expect(await measureLength(Buffer.concat([ogg, link]))).toBeGreaterThan(3_900)
  // A tag of no size that there is, and facts about others in each frame.
  const mp3 = fixture('tone.mp3')
  const tag = Buffer.from([...Buffer.from('ID3'), 4, 0, 0, 0, 0, 0x80 | (mp3.length >> 7), 0])
  expect(await measureLength(Buffer.concat([tag, mp3]))).toBeGreaterThanOrEqual(2_000)
  const marked = fixture('tone.mp3')
  for (
    let at = marked.indexOf(Buffer.from([0xff, 0xfb]));
    at !== -1 && at + 40 < marked.length;
    at = marked.indexOf(Buffer.from([0xff, 0xfb]), at + 40)
  )
    marked.write('Xing', at + 30, 'latin1')
  expect(await measureLength(marked)).toBeGreaterThanOrEqual(2_000)
  // Elements that decoders do not step over, before the sound.
  const webm = fixture('unfinished.webm')
  const cluster = webm.indexOf(Buffer.from([0x1f, 0x43, 0xb6, 0x75]))
  for (const hiding of [
    [0xec, 0xff],
    [0xe7, 0x08, 0xff, 0xff, 0xff, 0xff],
  ]) {
    const file = Buffer.concat([webm.subarray(0, cluster), Buffer.from(hiding), webm.subarray(cluster)])
    expect(await measureLength(file)).toBeGreaterThanOrEqual(2_000)
  }
})

it('a WAV file is no shorter than a decoder makes it, and no longer for what follows its sound', async () => {
  const seconds = 4
  const { length } = wav(seconds)
  // Of A-law a sample is a byte.
  expect(await measureLength(makeWav(seconds, [6, 1, 8_000, 1, 64]))).toBeGreaterThanOrEqual((length - 44) / 8)
  // A packed format at an absurd rate.
  expect(await measureLength(makeWav(seconds, [0x55, 1, 44_100, 0xffffffff, 0]))).toBeGreaterThanOrEqual(((length - 44) * 8_000) / 448_000)
  const cover = chunk('id3 ', Buffer.alloc(500_000, 1))
  expect(await measureLength(Buffer.concat([wav(seconds), cover]))).toBe(4_000)
})

it.each(['tone.flac', 'tone.mp3', 'tone.m4a', 'tone.ogg', 'tone.webm'])('%s is no shorter than so many bytes can be', async (name) => {
  // What follows is none of its frames, and whoever decodes it may hear what it likes.
  const more = Buffer.alloc(10_000_000, 0x55)
  if (name === 'tone.m4a') more.write('free', more.writeUInt32BE(more.length))
  const file = Buffer.concat([fixture(name), more])
  expect((await read(file))!.durationMs).toBeGreaterThan(8_000)
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
  expect(await read(bytes)).toBeNull()
})

it('a file that holds its parser up is given up, and others are read after it', async () => {
  const reader = createAudioReader(4_000)
  const bad = filled(25 * 1024 * 1024, 0xff, '\xff\xfb')
  expect(await Promise.all([bad, bad].map((file) => reader.read(file, 'org_a', signal)))).toEqual([null, null])
  expect(await reader.read(wav(1), 'org_a', signal)).toEqual({ format: 'wav', durationMs: 1_000 })
})

it('files that hold their parser up keep only their own organization waiting, in a bounded queue', async () => {
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
