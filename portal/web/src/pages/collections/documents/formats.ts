/** What a file is, as far as its first bytes tell. The service looks closer, and has the last word. */
type FileKind = 'document' | 'picture' | 'sound' | 'unknown'

/** How many bytes `kindOf` looks at. */
export const HEAD_BYTES = 1024

const SIGNATURES: readonly (readonly [FileKind, number, readonly number[]])[] = [
  ['document', 0, [0x25, 0x50, 0x44, 0x46]], // %PDF
  ['document', 0, [0x50, 0x4b, 0x03, 0x04]], // Zip: DOCX, XLSX, PPTX, ODT, EPUB
  ['document', 0, [0xd0, 0xcf, 0x11, 0xe0]], // OLE: DOC, MSG
  ['picture', 0, [0x89, 0x50, 0x4e, 0x47]], // PNG
  ['picture', 0, [0xff, 0xd8, 0xff]], // JPEG
  ['picture', 0, [0x49, 0x49, 0x2a, 0x00]], // TIFF, little-endian
  ['picture', 0, [0x4d, 0x4d, 0x00, 0x2a]], // TIFF, big-endian
  ['picture', 8, [0x57, 0x45, 0x42, 0x50]], // RIFF....WEBP
  ['sound', 8, [0x57, 0x41, 0x56, 0x45]], // RIFF....WAVE
  ['sound', 0, [0x49, 0x44, 0x33]], // ID3: MP3
  ['sound', 0, [0x66, 0x4c, 0x61, 0x43]], // fLaC
  ['sound', 0, [0x4f, 0x67, 0x67, 0x53]], // OggS
  ['sound', 4, [0x66, 0x74, 0x79, 0x70]], // ....ftyp: MP4, M4A
  ['sound', 0, [0x1a, 0x45, 0xdf, 0xa3]], // WebM
]

export function kindOf(head: Uint8Array): FileKind {
  const found = SIGNATURES.find(([, at, bytes]) => bytes.every((byte, index) => head[at + index] === byte))
  if (found) return found[0]
  const [first = 0, second = 0] = head
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  // MP3 without a tag: eleven bits of ones, and a layer.
  if (!isUtf16 && first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0) return 'sound'
  // Text in every encoding but UTF-16 has no zero byte; nearly all programs, videos and disk images have one at once.
  return isUtf16 || !head.includes(0) ? 'document' : 'unknown'
}

/** Why a file is not sent. */
export type Refusal = 'empty' | 'tooLarge' | 'noRoom' | 'unsupported' | 'needsOcr' | 'needsSpeech' | 'soundTooLarge' | 'unreadable'

export interface Rules {
  /** Null: unknown. */
  readonly maxFileBytes: number | null
  /** What the plan has left. Null: unknown. */
  readonly roomBytes: number | null
  readonly readsImages: boolean
  readonly readsAudio: boolean
}

/** The largest recording that speech models take. */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024

/** Why the service would refuse a file; null: it takes it. */
export function refusalOf(sizeBytes: number, head: Uint8Array, rules: Rules): Refusal | null {
  if (sizeBytes === 0) return 'empty'
  if (rules.maxFileBytes !== null && sizeBytes > rules.maxFileBytes) return 'tooLarge'
  if (rules.roomBytes !== null && sizeBytes > rules.roomBytes) return 'noRoom'
  const kind = kindOf(head)
  if (kind === 'unknown') return 'unsupported'
  if (kind === 'picture' && !rules.readsImages) return 'needsOcr'
  if (kind === 'sound' && !rules.readsAudio) return 'needsSpeech'
  if (kind === 'sound' && sizeBytes > MAX_AUDIO_BYTES) return 'soundTooLarge'
  return null
}
