/** The length of a frame for each configuration (RFC 6716, table 2), in milliseconds. */
const SILK_MS = [10, 20, 40, 60]
const HYBRID_MS = [10, 20]
const CELT_MS = [2.5, 5, 10, 20]
/** No packet is longer (RFC 6716, section 3.4). */
const MAX_PACKET_MS = 120

/** The length of one packet, by its first two bytes. */
export function opusPacketMs(toc: number, second: number): number {
  const configuration = toc >> 3
  const frameMs = configuration < 12 ? SILK_MS : configuration < 16 ? HYBRID_MS : CELT_MS
  const ms = frameMs[configuration & (frameMs.length - 1)]!
  const code = toc & 3
  const frames = code === 0 ? 1 : code === 3 ? second & 0x3f : 2
  return Math.min(ms * frames, MAX_PACKET_MS)
}
