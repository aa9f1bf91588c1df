/** What the frames of a file amount to. */
export interface Measured {
  readonly ms: number
  /** Bytes of audio. */
  readonly soundBytes: number
  /** The codec's highest bit rate, at which a file of this size is shortest. */
  readonly mostBitsPerSecond: number
}

/** RFC 6716, section 2.1.1. Vorbis (quality 10) has 500,000. */
export const OPUS_BITS_PER_SECOND = 510_000
/** 6,144 bits for each channel and frame of 1,024 samples (ISO/IEC 14496-3, 4.5.3.3), in stereo at 48 kHz. */
export const AAC_BITS_PER_SECOND = 576_000
/** Stereo of 24 bits at 192 kHz. Also the highest of any file, pictures included. */
export const PCM_BITS_PER_SECOND = 9_216_000
/** The highest of MPEG audio. Other codecs in WAV files (ADPCM, GSM) have less. */
export const PACKED_BITS_PER_SECOND = 448_000
/**
 * For codecs whose packets are not read: AMR has 20 ms, Opus 20 as encoders write it, AAC 21 at 48 kHz, MP3 24, AC-3 32.
 * A sender who chooses longer packets of Opus gains at most sixfold.
 */
export const USUAL_PACKET_MS = 20
