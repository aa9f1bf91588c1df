import { EML, MBOX, MSG, ZIP } from '../../../domain/media-types.ts'
import type { ParserLimits } from '../limits.ts'

/** An embedded file before any check. */
export interface PackedFile {
  /** Includes the folders, if any. */
  readonly name: string
  /** Null if the file cannot be unpacked. */
  readonly bytes: Uint8Array | null
}

type Unpack = (bytes: Uint8Array, limits: ParserLimits) => AsyncIterable<PackedFile>

const UNPACK: Readonly<Record<string, () => Promise<Unpack>>> = {
  [ZIP]: async () => (await import('./unpack-zip.ts')).unpackZip,
  [EML]: async () => (await import('./read-mail.ts')).unpackEml,
  [MBOX]: async () => (await import('./read-mail.ts')).unpackMbox,
  [MSG]: async () => (await import('./read-msg.ts')).unpackMsg,
}

/** Yields the files of an archive, or the attachments of messages, in order. */
export async function* unpack(mediaType: string, bytes: Uint8Array, limits: ParserLimits): AsyncGenerator<PackedFile> {
  const open = await UNPACK[mediaType]!()
  yield* open(bytes, limits)
}
