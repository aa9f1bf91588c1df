import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { CosineCalibration } from '../../ports/engines.ts'

const VECTOR = z.array(z.number()).transform((numbers) => Float32Array.from(numbers))
const CALIBRATION = z.object({ arabic_anchor: VECTOR, english_anchor: VECTOR, midpoint: z.number(), slope: z.number().positive() })

/**
 * Reads `calibration.json` of a model's folder. Without this file, the model was not measured.
 * @throws {Error} the file has another format than `fit-calibration` writes
 */
export async function readCalibration(directory: URL): Promise<CosineCalibration | null> {
  let text: string
  try {
    text = await readFile(new URL('calibration.json', directory), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const { arabic_anchor: arabicAnchor, english_anchor: englishAnchor, midpoint, slope } = CALIBRATION.parse(JSON.parse(text))
  return { arabicAnchor, englishAnchor, midpoint, slope }
}
