/** Accepted audio formats, as the file extensions by which engines recognise them. */
export type AudioFormat = 'flac' | 'mp3' | 'mp4' | 'ogg' | 'wav' | 'webm'

export interface Audio {
  readonly format: AudioFormat
  /**
   * The length in milliseconds: the greater of what the file states and the least for its bytes. Null when the file
   * states none.
   */
  readonly durationMs: number | null
}

/** Identifies an audio file without decoding it. */
export interface AudioReader {
  /**
   * Decides by the bytes, not by a name. Null: the format is not accepted, or there is no audio in it. Organizations take
   * turns.
   * @throws {TooBusy} too many files of the organization wait
   * @throws the reason of the aborted signal, while the file waits
   */
  read(bytes: Uint8Array, organizationId: string, signal: AbortSignal): Promise<Audio | null>
}
