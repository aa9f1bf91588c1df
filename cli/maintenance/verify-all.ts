import type { ErrorCode } from '../../schema/errors.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { type Service, ServiceUnreachable } from './service.ts'
import { type VerifyOptions, verify } from './verify.ts'
import { verifyBlobs, verifyFiles, verifyLedger } from './verify-stores.ts'

type Part = (service: Service, options: VerifyOptions, say: (line: string) => void) => Promise<boolean>

const STORES: Readonly<Record<string, Part>> = { files: verifyFiles, ledger: verifyLedger, blobs: verifyBlobs }

/** Codes of a part that cannot be read. */
const UNREADABLE: readonly ErrorCode[] = ['service_unavailable', 'index_rebuilding', 'part_unavailable', 'internal']

/**
 * Verifies one part after another; with a collection, only its index. If the service cannot read a part, this is
 * printed and the next one follows. Gives the exit code: 0 all in order, 1 differences remain, 2 a part could not be
 * verified.
 */
export async function verifyAll(service: Service, options: VerifyOptions, output: Pick<Console, 'log' | 'error'>): Promise<number> {
  let code = 0
  for (const [name, part] of Object.entries({ ...(options.collectionId === undefined && STORES), index: verify })) {
    try {
      if (!(await part(service, options, output.log))) code ||= 1
    } catch (error) {
      if (error instanceof ServiceUnreachable || !(error instanceof KisError && UNREADABLE.includes(error.code))) throw error
      output.error(`${name}: cannot be verified: ${error.message}`)
      code = 2
    }
  }
  return code
}
