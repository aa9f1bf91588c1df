/**
 * Vectors that the adapter keeps besides Elasticsearch's own: base64 of int8 components, scaled so that the largest is
 * 127. The scale is not kept, because a cosine does not depend on it. 384 components take 512 characters, instead of
 * 8,000 for floats in JSON. So one answer can carry the cosine of every candidate, whichever leg found it.
 */
export function encodeVector(vector: Float32Array): string {
  const largest = vector.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  return Buffer.from(Int8Array.from(vector, (x) => Math.round((x / largest) * 127)).buffer).toString('base64')
}

export function cosineWith(query: Float32Array): (encoded: string) => number {
  const queryLength = Math.sqrt(query.reduce((sum, x) => sum + x * x, 0))
  return (encoded) => {
    const bytes = Buffer.from(encoded, 'base64')
    const vector = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    let dot = 0
    let squares = 0
    for (let i = 0; i < vector.length; i++) {
      const x = vector[i]!
      dot += x * query[i]!
      squares += x * x
    }
    return Math.max(-1, Math.min(1, dot / (Math.sqrt(squares) * queryLength)))
  }
}

/** Seven decimals: for vectors of length 1 as exact as a float, and half as long in JSON. */
export function decimals(vector: Float32Array): number[] {
  return Array.from(vector, (x) => Math.round(x * 1e7) / 1e7)
}
