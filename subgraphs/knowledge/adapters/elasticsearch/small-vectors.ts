/**
 * Vectors as the adapter keeps them beside Elasticsearch's own: base64 of int8 components, the largest becoming 127. The scale is not kept,
 * because a cosine does not depend on it. 512 characters for 384 components, where the floats in JSON are 8,000: that is what lets one
 * answer carry the cosine of every candidate, whichever leg found it.
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

/** Seven decimals, which are as good as a float's own for vectors of length 1 and half as long in JSON. */
export function decimals(vector: Float32Array): number[] {
  return Array.from(vector, (x) => Math.round(x * 1e7) / 1e7)
}
