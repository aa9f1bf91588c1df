import { readFileSync } from 'node:fs'
import { type Manifest, readManifest } from './persisted-operations.ts'

/** What an operator can set of the gateway. */
export interface GatewayConfig {
  /** Whether callers with a key may read the schema (`KIS_INTROSPECTION`, `on` unless set to `off`). */
  readonly introspection: boolean
  /** Largest body of POST /graphql, in bytes: the largest file as base64 and 64 KiB for the rest of the operation. */
  readonly maxBodyBytes: number
  /** Operations by the ids that clients call them by (`KIS_TRUSTED_DOCUMENTS`, the path of a manifest; default: none). */
  readonly trustedDocuments: Manifest
  /** Whether callers without the scope `operator` may run these only (`KIS_TRUSTED_DOCUMENTS_ONLY`, `off` unless set to `on`). */
  readonly trustedDocumentsOnly: boolean
}

const maxBodyBytesFor = (maxFileBytes: number) => Math.ceil((maxFileBytes * 4) / 3) + 64 * 1024

/** `maxFileBytes` is the largest file that any plan allows. @throws {Error} with every value that cannot be used. */
export function readGatewayConfig(env: NodeJS.ProcessEnv, maxFileBytes: number): GatewayConfig {
  const problems: string[] = []
  const isOn = (name: string, byDefault: 'on' | 'off') => {
    const value = env[name] ?? byDefault
    if (value !== 'on' && value !== 'off') problems.push(`${name} is "${value}"; it may be "on" or "off"`)
    return value === 'on'
  }
  const config: GatewayConfig = {
    introspection: isOn('KIS_INTROSPECTION', 'on'),
    maxBodyBytes: maxBodyBytesFor(maxFileBytes),
    trustedDocuments: trustedDocuments(env.KIS_TRUSTED_DOCUMENTS, problems),
    trustedDocumentsOnly: isOn('KIS_TRUSTED_DOCUMENTS_ONLY', 'off'),
  }
  if (config.trustedDocumentsOnly && !env.KIS_TRUSTED_DOCUMENTS) problems.push('KIS_TRUSTED_DOCUMENTS_ONLY needs KIS_TRUSTED_DOCUMENTS')
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return config
}

function trustedDocuments(file: string | undefined, problems: string[]): Manifest {
  if (!file) return new Map()
  try {
    return readManifest(readFileSync(file, 'utf8'))
  } catch (error) {
    problems.push(`KIS_TRUSTED_DOCUMENTS: ${file} cannot be read as a manifest: ${(error as Error).message}`)
    return new Map()
  }
}
