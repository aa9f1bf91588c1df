const MIB = 1024 * 1024

export interface RestConfig {
  /** Bytes of a chat request: a long conversation with some images. */
  readonly chatBodyBytes: number
  /** Bytes of any other JSON body. */
  readonly jsonBodyBytes: number
  /** Bytes of an upload: the largest file as base64, and its name. */
  readonly uploadBodyBytes: number
  /** Bytes of a form with an audio file. */
  readonly audioBodyBytes: number
  /** Host names, besides those of this machine, of the service and of web pages that may use `/mcp`. */
  readonly mcpHosts: ReadonlySet<string>
}

/** @param maxFileBytes the largest file that any plan allows (default: 25 MiB, as the built-in plan) */
export function restConfig(maxFileBytes: number = 25 * MIB, mcpHosts: ReadonlySet<string> = new Set()): RestConfig {
  return {
    mcpHosts,
    chatBodyBytes: 20 * MIB,
    jsonBodyBytes: 4 * MIB,
    // Base64 turns 3 bytes into 4 characters. 64 KiB are for the name and the JSON around it.
    uploadBodyBytes: Math.ceil(maxFileBytes / 3) * 4 + 64 * 1024,
    // The largest file that transcriptions take, and the other fields.
    audioBodyBytes: 25 * MIB + 64 * 1024,
  }
}
