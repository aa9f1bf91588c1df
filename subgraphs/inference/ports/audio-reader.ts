/** The accepted audio formats, as the file extensions by which engines recognize them. */
export type AudioFormat = 'flac' | 'mp3' | 'mp4' | 'ogg' | 'wav' | 'webm'

/** An audio file that was identified. */
export interface Audio {
  readonly format: AudioFormat
  /**
   * The length in milliseconds: what the file states, or the least that its bytes can last if that is more. Null: the
   * file states no length.
   */
  readonly durationMs: number | null
}

/** Identifies an audio file without decoding it. */
export interface AudioReader {
  /**
   * Detects the format from the bytes, not from a name. Returns null if the format is not accepted or the file has no
   * audio. Organizations are served round robin.
   * @throws {TooBusy} too many files of the organization wait
   * @throws the reason of the aborted signal, while the file waits
   */
  read(bytes: Uint8Array, organizationId: string, signal: AbortSignal): Promise<Audio | null>
}
