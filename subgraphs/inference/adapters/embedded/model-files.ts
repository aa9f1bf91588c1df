import { type FileHandle, open, stat } from 'node:fs/promises'
import { MODEL, varintAt } from './onnx-fields.ts'

export const NETWORK_FILE = 'model.onnx'
/** What a model's folder needs beside the network. */
const OTHER_FILES = ['config.json', 'reference.json', 'vocabulary.bin']
/** A field's key and length. */
const MAX_HEAD_BYTES = 20

/**
 * Looks whether the files of a model are there and whole, without reading more of them than some bytes: that takes a
 * millisecond, and loading the model a second. Damage inside of a file is found when it is loaded.
 * @throws {Error} a file is missing or cut off
 */
export async function lookAtModel(directory: URL): Promise<void> {
  for (const name of OTHER_FILES) await stat(new URL(name, directory))
  await using file = await open(new URL(NETWORK_FILE, directory))
  const { size } = await file.stat()
  let hasGraph = false
  let at = 0
  while (at < size) {
    const { number, end } = await fieldAt(file, at)
    hasGraph ||= number === MODEL.graph
    at = end
  }
  if (at !== size || !hasGraph) throw new Error(`${NETWORK_FILE} is cut off`)
}

async function fieldAt(file: FileHandle, at: number): Promise<{ readonly number: number; readonly end: number }> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_HEAD_BYTES), 0, MAX_HEAD_BYTES, at)
  const head = buffer.subarray(0, bytesRead)
  const key = varintAt(head, 0)
  const number = Math.floor(key.value / 8)
  if (key.value % 8 === 1) return { number, end: at + key.end + 8 }
  if (key.value % 8 === 5) return { number, end: at + key.end + 4 }
  const length = varintAt(head, key.end)
  return { number, end: at + length.end + (key.value % 8 === 2 ? length.value : 0) }
}
