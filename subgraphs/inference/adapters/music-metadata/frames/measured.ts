/** What the frames of a file come to. */
export interface Measured {
  readonly ms: number
  /** Bytes that hold sound. */
  readonly soundBytes: number
  /** The most bits of one second in the codec, which is what makes a file of so many bytes shortest. */
  readonly mostBitsPerSecond: number
}

/** RFC 6716, section 2.1.1; Vorbis (quality 10) has 500. */
export const OPUS_BITS_PER_SECOND = 510_000
/** 6,144 bits a channel and frame of 1,024 samples (ISO/IEC 14496-3, 4.5.3.3), in stereo at 48 kHz. */
export const AAC_BITS_PER_SECOND = 576_000
/** Stereo of 24 bits at 192 kHz; also the most of any file, pictures included. */
export const PCM_BITS_PER_SECOND = 9_216_000
/** The most of MPEG audio; other codecs that stand in a WAV file (ADPCM, GSM) have less. */
export const PACKED_BITS_PER_SECOND = 448_000
