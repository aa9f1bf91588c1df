/** The wire format of Protocol Buffers, as far as an ONNX model needs it, and the numbers of fields in onnx.proto3. */

export const MODEL = { format: 1, graph: 7, operators: 8 }
export const OPERATOR_SET = { version: 2 }
export const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 }
export const NODE = { input: 1, output: 2, name: 3, operator: 4, attribute: 5 }
export const ATTRIBUTE = { name: 1, integer: 3, type: 20 }
export const VALUE = { name: 1, type: 2 }
export const TENSOR = { dimension: 1, type: 2, name: 8, data: 9, outside: 13, place: 14 }
export const ENTRY = { key: 1, value: 2 }

export interface Field {
  readonly number: number
  /** For text, bytes and messages; otherwise empty. */
  readonly content: Buffer
  /** With its number and length. */
  readonly whole: Buffer
}

/** The fields of a message in the wire format of Protocol Buffers. */
export function* readFields(message: Buffer): Generator<Field> {
  let at = 0
  const varint = () => {
    const { value, end } = varintAt(message, at)
    at = end
    return value
  }
  while (at < message.length) {
    const begin = at
    const key = varint()
    let content = message.subarray(0, 0)
    if (key % 8 === 2) {
      const length = varint()
      content = message.subarray(at, at + length)
      at += length
    } else if (key % 8 === 0) varint()
    else at += key % 8 === 1 ? 8 : 4
    if (at > message.length) throw new Error('the model ends too soon')
    yield { number: Math.floor(key / 8), content, whole: message.subarray(begin, at) }
  }
}

/** The number at a place of a message, and the place after it. */
export function varintAt(message: Buffer, at: number): { readonly value: number; readonly end: number } {
  let value = 0
  for (let unit = 1, end = at; ; unit *= 128) {
    const byte = message[end++]
    if (byte === undefined) throw new Error('the model ends too soon')
    value += (byte % 128) * unit
    if (byte < 128) return { value, end }
  }
}

/** Writes a field of text, bytes or a message. */
export function encodeField(number: number, content: Buffer): Buffer {
  return Buffer.concat([encodeVarint(number * 8 + 2), encodeVarint(content.length), content])
}

/** Writes a field with a whole number of at least 0. */
export function encodeNumber(number: number, value: number): Buffer {
  return Buffer.concat([encodeVarint(number * 8), encodeVarint(value)])
}

/** The texts of a field that a message may have several times. */
export function readTexts(message: Buffer, wanted: number): readonly string[] {
  return [...readFields(message)].filter(({ number }) => number === wanted).map(({ content }) => content.toString())
}

function encodeVarint(value: number): Buffer {
  const bytes: number[] = []
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128)
  return Buffer.from([...bytes, value])
}
