/** A vector on its way to another service: itself within a process, base64 of little-endian 32-bit floats elsewhere. */
export class WireVector {
  readonly floats: Float32Array

  constructor(floats: Float32Array) {
    this.floats = floats
  }

  toJSON(): string {
    const { buffer, byteOffset, byteLength } = this.floats
    return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
  }
}

/** Reads what a link gives for a vector. Every platform that Node runs on is little-endian. */
export function readVector(given: string | WireVector): Float32Array {
  if (typeof given !== 'string') return given.floats
  // Copied, because a Float32Array must begin at a multiple of four bytes.
  return new Float32Array(Uint8Array.from(Buffer.from(given, 'base64')).buffer)
}
