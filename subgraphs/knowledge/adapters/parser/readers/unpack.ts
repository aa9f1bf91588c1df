import { EML, MBOX, MSG, ZIP } from '../../../domain/media-types.ts'
import type { ParserLimits } from '../limits.ts'

/** A file inside another one, before anybody has looked at it. */
export interface PackedFile {
  /** With its folders, if it has any. */
  readonly name: string
  /** Null if it cannot be unpacked. */
  readonly bytes: Uint8Array | null
}

type Unpack = (bytes: Uint8Array, limits: ParserLimits) => AsyncIterable<PackedFile>

const UNPACK: Readonly<Record<string, () => Promise<Unpack>>> = {
  [ZIP]: async () => (await import('./unpack-zip.ts')).unpackZip,
  [EML]: async () => (await import('./read-mail.ts')).unpackEml,
  [MBOX]: async () => (await import('./read-mail.ts')).unpackMbox,
  [MSG]: async () => (await import('./read-msg.ts')).unpackMsg,
}

/** Yields the files inside an archive, or the attachments of messages, in their order. */
export async function* unpack(mediaType: string, bytes: Uint8Array, limits: ParserLimits): AsyncGenerator<PackedFile> {
  const open = await UNPACK[mediaType]!()
  yield* open(bytes, limits)
}
