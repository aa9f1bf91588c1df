const MIB = 1024 * 1024

export interface RestConfig {
  /** Bytes of a chat request: a long conversation with some pictures in it. */
  readonly chatBodyBytes: number
  /** Bytes of any other JSON body. */
  readonly jsonBodyBytes: number
  /** Bytes of an upload: the largest file in base64, and its name. */
  readonly uploadBodyBytes: number
  /** Bytes of a form with a file of sound. */
  readonly audioBodyBytes: number
  /** Names of hosts, beside those of this machine itself, by which the service and the pages that may use `/mcp` are reached. */
  readonly mcpHosts: ReadonlySet<string>
}

/** @param maxFileBytes the largest file that any plan allows (25 MiB in the built-in one). */
export function restConfig(maxFileBytes: number = 25 * MIB, mcpHosts: ReadonlySet<string> = new Set()): RestConfig {
  return {
    mcpHosts,
    chatBodyBytes: 20 * MIB,
    jsonBodyBytes: 4 * MIB,
    // Base64 writes 3 bytes as 4 characters; 64 KiB are for the name and the JSON around it.
    uploadBodyBytes: Math.ceil(maxFileBytes / 3) * 4 + 64 * 1024,
    // The largest file that transcriptions take, and the fields beside it.
    audioBodyBytes: 25 * MIB + 64 * 1024,
  }
}
