/** Bytes at the end of a piece that may begin a blank line. */
const TAIL = 3
const BLANK_LINES = ['\n\n', '\n\r\n', '\r\r']

/**
 * For an answer of this type: gives a function that takes each piece, and returns the bytes of the event that is still
 * open. An answer that is not a stream has none.
 */
export function measureOpenEvent(contentType: string): (piece: Uint8Array) => number {
  if (contentType.startsWith('text/event-stream')) return openTextEvent()
  if (contentType.startsWith('application/vnd.amazon.eventstream')) return openFrame()
  return () => 0
}

/** Server-sent events end with a blank line (WHATWG HTML, section 9.2.6), which may be split between pieces. */
function openTextEvent(): (piece: Uint8Array) => number {
  let open = 0
  let tail = Buffer.alloc(0)
  return (piece) => {
    const bytes = Buffer.concat([tail, piece])
    const end = Math.max(...BLANK_LINES.map((line) => (bytes.includes(line) ? bytes.lastIndexOf(line) + line.length : -1)))
    open = end === -1 ? open + piece.length : bytes.length - end
    tail = bytes.subarray(-TAIL)
    return open
  }
}

/** Frames of AWS begin with their whole length, in 4 bytes (Amazon event stream encoding). */
function openFrame(): (piece: Uint8Array) => number {
  let prelude = 0
  let bytesOfPrelude = 0
  /** Length of the open frame, and how much of it is missing. */
  let length = 0
  let left = 0
  return (piece) => {
    for (let at = 0; at < piece.length; ) {
      if (left > 0) {
        const consumed = Math.min(left, piece.length - at)
        at += consumed
        left -= consumed
        continue
      }
      prelude = prelude * 256 + piece[at++]!
      bytesOfPrelude += 1
      if (bytesOfPrelude < 4) continue
      length = prelude
      // A frame shorter than its own header is broken. The reader of frames reports it.
      left = Math.max(0, prelude - 4)
      prelude = 0
      bytesOfPrelude = 0
    }
    return left > 0 ? length : 0
  }
}
