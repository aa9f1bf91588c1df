/** What an operator can set of the gateway. */
export interface GatewayConfig {
  /** Whether callers with a key may read the schema (`KIS_INTROSPECTION`, `on` unless set to `off`). */
  readonly introspection: boolean
  /** Largest body of POST /graphql, in bytes: the largest file as base64 and 64 KiB for the rest of the operation. */
  readonly maxBodyBytes: number
}

const maxBodyBytesFor = (maxFileBytes: number) => Math.ceil((maxFileBytes * 4) / 3) + 64 * 1024

/** `maxFileBytes` is the largest file that any plan allows. @throws {Error} a value that cannot be used. */
export function readGatewayConfig(env: NodeJS.ProcessEnv, maxFileBytes: number): GatewayConfig {
  const introspection = env.KIS_INTROSPECTION ?? 'on'
  if (introspection !== 'on' && introspection !== 'off') throw new Error(`KIS_INTROSPECTION is "${introspection}"; it may be "on" or "off"`)
  return { introspection: introspection !== 'off', maxBodyBytes: maxBodyBytesFor(maxFileBytes) }
}
