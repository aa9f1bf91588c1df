import { readFile, stat } from 'node:fs/promises'

export const NETWORK_FILE = 'model.onnx'
/** What a model's folder needs beside the network and `config.json`. */
const OTHER_FILES = ['reference.json', 'vocabulary.bin']

/**
 * Checks that the files of a model are there and whole, by their sizes: that takes a millisecond, and loading the model a
 * second. Damage inside of a file is found when it is loaded.
 * @throws {Error} a file is missing or cut off
 */
export async function checkModelFiles(directory: URL): Promise<void> {
  for (const name of OTHER_FILES) await stat(new URL(name, directory))
  const { model_bytes: bytes } = JSON.parse(await readFile(new URL('config.json', directory), 'utf8')) as { model_bytes: number }
  const { size } = await stat(new URL(NETWORK_FILE, directory))
  if (size !== bytes) throw new Error(`${NETWORK_FILE} has ${size} bytes in place of ${bytes}`)
}
