import { type Caller, requireScope } from '../../identity/principal.ts'

interface PartHealth {
  readonly isReady: boolean
  /** As `<part>: <sentence>`. */
  readonly problems: readonly string[]
}

/**
 * Tells the operator all that `/readyz` knows, which tells strangers less.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 */
export async function partHealth(problems: () => Promise<readonly string[]>, caller: Caller | null): Promise<PartHealth> {
  requireScope(caller, 'operator')
  const found = await problems()
  return { isReady: found.length === 0, problems: found }
}
