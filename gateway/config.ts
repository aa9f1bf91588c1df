import { readFileSync } from 'node:fs'
import { type CatalogPlan, DEFAULT_OPERATION_NODES, MAX_INLINE_FILE_BYTES } from '../subgraphs/common/catalog/plan.ts'
import { ConfigError } from '../subgraphs/common/errors.ts'
import type { OAuthSettings } from '../subgraphs/common/identity/credentials.ts'
import type { Origins } from '../subgraphs/common/server/origins.ts'
import { type Manifest, readManifest } from './persisted-operations.ts'

/** Settings of the gateway that an operator can change. */
export interface GatewayConfig {
  /** Whether callers with a key may read the schema (`KIS_INTROSPECTION`, `on` unless set to `off`). */
  readonly introspection: boolean
  /**
   * Largest body of POST /graphql, in bytes: the largest file of one request as base64, plus 64 KiB for the rest of the
   * operation.
   */
  readonly maxBodyBytes: number
  /** Returns the most nodes that one result may have under the plan with this code. */
  countNodes(plan: string): number
  /**
   * Trusted operations by the IDs that clients send (`KIS_TRUSTED_DOCUMENTS`: the path of a manifest; default: none).
   */
  readonly trustedDocuments: Manifest
  /**
   * Whether callers without the scope `operator` may run only trusted operations (`KIS_TRUSTED_DOCUMENTS_ONLY`, `off`
   * unless set to `on`).
   */
  readonly trustedDocumentsOnly: boolean
  /** Origins of the web pages that may use `/graphql` by HTTP and by sockets (`KIS_CORS_ORIGINS`, `*` unless set). */
  readonly origins: Origins
  /** The issuer whose access tokens count as keys (`KIS_OAUTH_ISSUER`); null: no issuer. */
  readonly oauth: OAuthSettings | null
}

const maxBodyBytesFor = (maxFileBytes: number) => Math.ceil((Math.min(maxFileBytes, MAX_INLINE_FILE_BYTES) * 4) / 3) + 64 * 1024

/** @param plans the plans of the catalog */
export function gatewayConfig(
  settings: Pick<GatewayConfig, 'introspection' | 'trustedDocuments' | 'trustedDocumentsOnly' | 'origins' | 'oauth'>,
  plans: readonly CatalogPlan[],
): GatewayConfig {
  return {
    ...settings,
    maxBodyBytes: maxBodyBytesFor(Math.max(...plans.map(({ maxFileBytes }) => maxFileBytes))),
    countNodes: (code) => plans.find((plan) => plan.code === code)?.operationNodes ?? DEFAULT_OPERATION_NODES,
  }
}

/**
 * Reads the operations of a manifest. Without a file there are none.
 * @throws {ConfigError} the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(file: string | undefined): Manifest {
  if (file === undefined) return new Map()
  try {
    return readManifest(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ConfigError([`KIS_TRUSTED_DOCUMENTS: ${file} cannot be read as a manifest: ${(error as Error).message}`])
  }
}
