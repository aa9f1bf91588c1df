/** Formats of sound that are taken; as extensions of file names, by which engines tell them apart. */
export type AudioFormat = 'flac' | 'mp3' | 'mp4' | 'ogg' | 'wav' | 'webm'

export interface Audio {
  readonly format: AudioFormat
  /** How long it is heard: the most of what the file says, what its frames come to, and the least for its bytes. Null where neither of the first two is known. */
  readonly durationMs: number | null
}

/** Says what a file of sound is, without decoding it. */
export interface AudioReader {
  /** The bytes decide, not a name. Null: not a format that is taken, or no sound in it. */
  read(bytes: Uint8Array): Promise<Audio | null>
}
