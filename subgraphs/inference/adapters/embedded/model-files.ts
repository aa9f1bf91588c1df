import { readFile, stat } from 'node:fs/promises'

export const NETWORK_FILE = 'model.onnx'
/** The files of a model's folder besides the network and `config.json`. */
const OTHER_FILES = ['reference.json', 'vocabulary.bin']

/**
 * Checks that the files of a model exist and are complete, by their sizes: this takes a millisecond, while loading the
 * model takes a second. Corruption inside a file is detected when the file is loaded.
 * @throws {Error} a file is missing or truncated
 */
export async function checkModelFiles(directory: URL): Promise<void> {
  for (const name of OTHER_FILES) await stat(new URL(name, directory))
  const { model_bytes: bytes } = JSON.parse(await readFile(new URL('config.json', directory), 'utf8')) as { model_bytes: number }
  const { size } = await stat(new URL(NETWORK_FILE, directory))
  if (size !== bytes) throw new Error(`${NETWORK_FILE} has ${size} bytes instead of ${bytes}`)
}
