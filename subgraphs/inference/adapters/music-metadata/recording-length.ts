/** Elements of Matroska (RFC 9559). */
const CLUSTER = Buffer.from([0x1f, 0x43, 0xb6, 0x75])
const TIMESTAMP = 0xe7
const BLOCK_GROUP = 0xa0
const BLOCKS = [0xa1, 0xa3]
/** Browsers record Opus packets of this length. */
const PACKET_MS = 20

/**
 * The length in milliseconds of a WebM recording that states none, as browsers write it: the time of the last block. 0:
 * not found. Assumes the default time unit, a millisecond.
 */
export function recordingMs(bytes: Buffer): number {
  let at = bytes.lastIndexOf(CLUSTER)
  if (at === -1) return 0
  at = elementAt(bytes, at + CLUSTER.length).from
  let clusterMs = 0
  let lastMs = 0
  while (at + 8 < bytes.length) {
    const id = bytes[at]!
    const { from, size } = elementAt(bytes, at + 1)
    if (id === TIMESTAMP && size <= 6 && from + size <= bytes.length) clusterMs = bytes.readUIntBE(from, size)
    else if (BLOCKS.includes(id) && from + 3 <= bytes.length) lastMs = clusterMs + bytes.readInt16BE(from + 1) + PACKET_MS
    at = id === BLOCK_GROUP ? from : from + size
  }
  return lastMs
}

/** The start and end of an element's content, from the size bytes after its id. */
function elementAt(bytes: Buffer, at: number): { readonly from: number; readonly size: number } {
  const length = Math.clz32(bytes[at]!) - 23
  let size = bytes[at]! & (0xff >> length)
  for (let i = 1; i < length; i++) size = size * 256 + (bytes[at + i] ?? 0)
  return { from: at + length, size }
}
