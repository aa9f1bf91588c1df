const MAX_INT8 = 127

/** Quantizes a vector to int8. The scale is not stored, because a cosine does not depend on it. */
export function quantize(vector: Float32Array): Int8Array {
  const largest = vector.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  return Int8Array.from(vector, (x) => Math.round((x / largest) * MAX_INT8))
}
