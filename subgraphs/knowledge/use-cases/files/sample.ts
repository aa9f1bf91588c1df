const MIB = 1024 * 1024
/** Larger files are never held in memory. */
export const LARGE_FILE_BYTES = 32 * MIB
const HEAD_BYTES = MIB
/** The directory of an archive with 2,000 entries takes some 200 KB. */
const TAIL_BYTES = 4 * MIB

/** The bytes that determine a file's format: all of them, or both ends. */
interface FileSample {
  readonly bytes: Uint8Array
  /** Number of bytes omitted between the two ends. */
  readonly cutBytes: number
}

/** Reads the bytes of a file that determine its format. */
export async function sampleOf(
  sizeBytes: number,
  read: (range: { readonly offset: number; readonly length: number }) => Promise<Uint8Array>,
): Promise<FileSample> {
  if (sizeBytes === 0) return { bytes: new Uint8Array(), cutBytes: 0 }
  if (sizeBytes <= LARGE_FILE_BYTES) return { bytes: await read({ offset: 0, length: sizeBytes }), cutBytes: 0 }
  const head = await read({ offset: 0, length: HEAD_BYTES })
  const tail = await read({ offset: sizeBytes - TAIL_BYTES, length: TAIL_BYTES })
  return { bytes: Buffer.concat([head, tail]), cutBytes: sizeBytes - HEAD_BYTES - TAIL_BYTES }
}
