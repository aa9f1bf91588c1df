/** Returns the first `dimensions` components, scaled to norm 1 again. */
export function shortened(vector: Float32Array, dimensions: number): Float32Array {
  const short = vector.slice(0, dimensions)
  const length = Math.sqrt(short.reduce((sum, component) => sum + component * component, 0))
  return length > 0 ? short.map((component) => component / length) : short
}

/** Encodes little-endian 32-bit floats, which is their form in memory on every platform that Node runs on. */
export function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}
