import type { Grey } from './scans.ts'

/** Writes bits, starting with either the lowest or the highest of each byte. */
class Bits {
  readonly #bytes: number[] = []
  #open = 0
  #count = 0
  readonly #put: (byte: number, bytes: number[]) => void
  readonly #isHighFirst: boolean

  constructor(isHighFirst: boolean, put: (byte: number, bytes: number[]) => void = (byte, bytes) => bytes.push(byte)) {
    this.#isHighFirst = isHighFirst
    this.#put = put
  }

  write(value: number, length: number): void {
    for (let at = 0; at < length; at += 1) {
      const bit = (value >> (this.#isHighFirst ? length - 1 - at : at)) & 1
      this.#open |= bit << (this.#isHighFirst ? 7 - this.#count : this.#count)
      this.#count += 1
      if (this.#count === 8) this.#flush()
    }
  }

  #flush(): void {
    this.#put(this.#open, this.#bytes)
    this.#open = 0
    this.#count = 0
  }

  end(filling: 0 | 1): Buffer {
    while (this.#count > 0) this.write(filling, 1)
    return Buffer.from(this.#bytes)
  }
}

/** Returns a lossless WebP (RFC 9649, section 3) whose pixels take eight bits each. */
export function toWebp({ width, height, data }: Grey, orientation = 1): Buffer {
  const bits = new Bits(false)
  bits.write(0x2f, 8)
  bits.write(width - 1, 14)
  bits.write(height - 1, 14)
  bits.write(0, 4)
  // One transform (red and blue are differences from green), no color cache, one group of codes.
  bits.write(1, 1)
  bits.write(2, 2)
  bits.write(0, 3)
  // Green: 256 codes of eight bits, then 24 unused ones. Lengths 0 and 8 have codes of one bit.
  bits.write(0, 1)
  bits.write(12 - 4, 4)
  for (const length of [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]) bits.write(length, 3)
  bits.write(0, 1)
  for (let symbol = 0; symbol < 280; symbol += 1) bits.write(symbol < 256 ? 1 : 0, 1)
  // Red, blue, alpha and distance have one value each.
  for (const value of [0, 0, 255, 0]) {
    bits.write(1, 1)
    bits.write(0, 1)
    bits.write(value > 1 ? 1 : 0, 1)
    bits.write(value, value > 1 ? 8 : 1)
  }
  for (const grey of data) for (let bit = 7; bit >= 0; bit -= 1) bits.write((grey >> bit) & 1, 1)
  const body = bits.end(0)
  // The flag for Exif, and the size.
  const head = Buffer.alloc(10)
  head[0] = 8
  head.writeUIntLE(width - 1, 4, 3)
  head.writeUIntLE(height - 1, 7, 3)
  return riff([
    ['VP8X', head],
    ['VP8L', body],
    ['EXIF', Buffer.from(exif(orientation))],
  ])
}

function riff(chunks: readonly (readonly [name: string, body: Buffer])[]): Buffer {
  const parts = chunks.flatMap(([name, body]) => {
    const head = Buffer.alloc(8)
    head.write(name, 0, 'latin1')
    head.writeUInt32LE(body.length, 4)
    return [head, body, Buffer.alloc(body.length % 2)]
  })
  const all = Buffer.concat([Buffer.from('WEBP'), ...parts])
  const head = Buffer.alloc(8)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(all.length, 4)
  return Buffer.concat([head, all])
}

/** The Huffman codes of ITU T.81, annex K: how many there are of each length, and their values. */
const DC = { counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], values: Array.from({ length: 12 }, (_, value) => value) }
/** All run lengths and sizes in codes of eight bits, except one. The table of the annex is shorter. */
const AC = {
  counts: [0, 0, 0, 0, 0, 0, 0, 162, 0, 0, 0, 0, 0, 0, 0, 0],
  values: [0x00, 0xf0, ...Array.from({ length: 160 }, (_, at) => (Math.floor(at / 10) << 4) | ((at % 10) + 1))],
}
const STEP = 4
const ZIGZAG = [
  0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57,
  50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
]

function codesOf({ counts, values }: typeof DC): ReadonlyMap<number, readonly [code: number, length: number]> {
  const codes = new Map<number, readonly [number, number]>()
  let code = 0
  let next = 0
  counts.forEach((count, index) => {
    for (let left = count; left > 0; left -= 1) codes.set(values[next++]!, [code++, index + 1])
    code <<= 1
  })
  return codes
}

const COSINES = Array.from({ length: 64 }, (_, at) => {
  const [frequency, position] = [at >> 3, at & 7]
  return Math.cos(((2 * position + 1) * frequency * Math.PI) / 16) * (frequency === 0 ? Math.SQRT1_2 : 1) * 0.5
})

/** Returns a baseline JPEG (ITU T.81) in shades of gray, with an Exif orientation. */
export function toJpeg(image: Grey, orientation = 1, isBigEndian = true): Buffer {
  const { width, height } = image
  const bits = new Bits(true, (byte, bytes) => (byte === 0xff ? bytes.push(byte, 0) : bytes.push(byte)))
  const [dc, ac] = [codesOf(DC), codesOf(AC)]
  const writeValue = (value: number, size: number) => bits.write(value < 0 ? value + (1 << size) - 1 : value, size)
  let last = 0
  for (let top = 0; top < height; top += 8) {
    for (let left = 0; left < width; left += 8) {
      const block = transformed(image, left, top)
      const values = ZIGZAG.map((at) => Math.round(block[at]! / STEP))
      const size = sizeOf(values[0]! - last)
      bits.write(...dc.get(size)!)
      writeValue(values[0]! - last, size)
      last = values[0]!
      let zeros = 0
      for (const value of values.slice(1)) {
        if (value === 0) {
          zeros += 1
          continue
        }
        for (; zeros > 15; zeros -= 16) bits.write(...ac.get(0xf0)!)
        bits.write(...ac.get((zeros << 4) | sizeOf(value))!)
        writeValue(value, sizeOf(value))
        zeros = 0
      }
      if (zeros > 0) bits.write(...ac.get(0)!)
    }
  }
  const frame = [8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0]
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xe1, exif(orientation, isBigEndian)),
    segment(0xdb, [0, ...Array<number>(64).fill(STEP)]),
    segment(0xc0, frame),
    segment(0xc4, [0x00, ...DC.counts, ...DC.values]),
    segment(0xc4, [0x10, ...AC.counts, ...AC.values]),
    segment(0xda, [1, 1, 0, 0, 63, 0]),
    bits.end(1),
    Buffer.from([0xff, 0xd9]),
  ])
}

/** Returns Exif data with only an orientation. */
function exif(orientation: number, isBigEndian = true): readonly number[] {
  const numbers = [
    [0x2a, 2],
    [8, 4],
    [1, 2],
    [0x0112, 2],
    [3, 2],
    [1, 4],
    [orientation, 2],
    [0, 2],
    [0, 4],
  ] as const
  const bytes = numbers.flatMap(([value, size]) => {
    const low = Array.from({ length: size }, (_, at) => (value >> (8 * at)) & 255)
    return isBigEndian ? low.reverse() : low
  })
  return [...Buffer.from(`Exif\0\0${isBigEndian ? 'MM' : 'II'}`), ...bytes]
}

function segment(marker: number, body: readonly number[]): Buffer {
  return Buffer.from([0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 255, ...body])
}

function sizeOf(value: number): number {
  return 32 - Math.clz32(Math.abs(value))
}

function transformed({ width, height, data }: Grey, left: number, top: number): readonly number[] {
  const rows = Array.from({ length: 64 }, (_, at) => {
    const y = Math.min(top + (at >> 3), height - 1)
    const frequency = at & 7
    let sum = 0
    for (let x = 0; x < 8; x += 1) sum += COSINES[frequency * 8 + x]! * (data[y * width + Math.min(left + x, width - 1)]! - 128)
    return sum
  })
  return Array.from({ length: 64 }, (_, at) => {
    const [frequency, column] = [at >> 3, at & 7]
    let sum = 0
    for (let y = 0; y < 8; y += 1) sum += COSINES[frequency * 8 + y]! * rows[y * 8 + column]!
    return sum
  })
}

/** Rotates an image clockwise by quarter turns. */
export function turned(image: Grey, quarters: number): Grey {
  let { width, height, data } = image
  for (let quarter = 0; quarter < quarters; quarter += 1) {
    const next = new Uint8Array(data.length)
    for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) next[x * height + (height - 1 - y)] = data[y * width + x]!
    ;[width, height, data] = [height, width, next]
  }
  return { width, height, data }
}

/** Mirrors an image horizontally. */
export function mirrored({ width, height, data }: Grey): Grey {
  return { width, height, data: data.map((_, at) => data[at - (at % width) + width - 1 - (at % width)]!) }
}

/** Crops an image to `height` rows. */
export function cutBelow({ width, data }: Grey, height: number): Grey {
  return { width, height, data: data.slice(0, width * height) }
}
