/** Token states on their way to another service: themselves within a process, base64 elsewhere. */
export class WireTokenStates {
  readonly states: Int8Array

  constructor(states: Int8Array) {
    this.states = states
  }

  toJSON(): string {
    const { buffer, byteOffset, byteLength } = this.states
    return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
  }
}

/** Reads what a link gives for token states. */
export function readTokenStates(given: string | WireTokenStates): Int8Array {
  return typeof given === 'string' ? Int8Array.from(Buffer.from(given, 'base64')) : given.states
}
