import { MAX_INLINE_FILE_BYTES } from '../subgraphs/common/catalog/plan.ts'
import type { OAuthSettings } from '../subgraphs/common/identity/credentials.ts'
import { Origins } from '../subgraphs/common/server/origins.ts'
import { STREAM_BYTES } from './uploads/append-stream.ts'

const MIB = 1024 * 1024

/** Limits and settings of the adapter. */
export interface RestConfig {
  /** Bytes of a chat request: a long conversation with some images. */
  readonly chatBodyBytes: number
  /** Bytes of any other JSON body. */
  readonly jsonBodyBytes: number
  /** Bytes of an upload as JSON: the largest file that may come as base64, and its name. */
  readonly uploadBodyBytes: number
  /** Bytes of the largest file that any plan allows. */
  readonly fileBytes: number
  /** Bytes held of a body that is streamed through, however long it is. */
  readonly streamBodyBytes: number
  /** Bytes of a form with an audio file. */
  readonly audioBodyBytes: number
  /** Host names of the service and of the web pages that may use `/mcp`, in addition to those of this machine. */
  readonly mcpHosts: ReadonlySet<string>
  readonly origins: Origins
  /** The authorization server that `/mcp` names to its clients; null: none. */
  readonly oauth: OAuthSettings | null
}

/** @param maxFileBytes the largest file that any plan allows */
export function restConfig(
  maxFileBytes: number = MAX_INLINE_FILE_BYTES,
  { mcpHosts = new Set(), origins = new Origins(), oauth = null }: Partial<Pick<RestConfig, 'mcpHosts' | 'origins' | 'oauth'>> = {},
): RestConfig {
  return {
    mcpHosts,
    origins,
    oauth,
    chatBodyBytes: 20 * MIB,
    jsonBodyBytes: 4 * MIB,
    // Base64 turns 3 bytes into 4 characters. 64 KiB are for the name and the JSON around it.
    uploadBodyBytes: Math.ceil(Math.min(maxFileBytes, MAX_INLINE_FILE_BYTES) / 3) * 4 + 64 * 1024,
    fileBytes: maxFileBytes,
    streamBodyBytes: STREAM_BYTES,
    // The largest file that transcriptions accept, and the other fields.
    audioBodyBytes: 25 * MIB + 64 * 1024,
  }
}
