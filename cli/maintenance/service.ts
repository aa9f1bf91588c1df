import { setTimeout as sleep } from 'node:timers/promises'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'

/** The service does not answer at all. When only a part is down, the rest still answers. */
export class ServiceUnreachable extends ServiceUnavailable {}

/** The running service, called with an API key over GraphQL. */
export interface Service {
  /**
   * The operation must be safe to repeat.
   * @throws {KisError} the service answered with this error
   * @throws {ServiceUnreachable} the service does not answer
   */
  execute<Data>(query: string, variables: Readonly<Record<string, unknown>>): Promise<Data>
}

/** Deleting surplus entries of a large index takes minutes; everything else takes seconds. */
const RESPONSE_TIMEOUT_MS = 600_000
/** Tries while the service is busy or restarts: half a minute in all. */
const MAX_TRIES = 6
const FIRST_WAIT_MS = 1_000

/**
 * Reads `KIS_API_KEY` and the address of the gateway.
 * @throws {Error} one of them is wrong; it lists every problem
 */
export function openService(env: NodeJS.ProcessEnv): Service {
  const problems: string[] = []
  const { KIS_API_KEY: apiKey } = env
  if (!apiKey) problems.push('KIS_API_KEY is missing: the API key of an operator')
  const addresses = (env.KIS_GATEWAY_URL ?? 'http://127.0.0.1:4000').split(',').map((address) => address.trim())
  if (!addresses.every((address) => URL.canParse(address) && /^https?:/.test(address)))
    problems.push('KIS_GATEWAY_URL must be an http(s) address, or several separated by commas')
  if (problems.length) throw new Error(problems.join('\n'))
  return {
    async execute<Data>(query: string, variables: Readonly<Record<string, unknown>>): Promise<Data> {
      for (let tries = 1; ; tries++) {
        const address = addresses[(tries - 1) % addresses.length]!
        try {
          return (await fetchResult(address, apiKey!, { query, variables })) as Data
        } catch (error) {
          if (tries === MAX_TRIES || !(error instanceof KisError && error.shouldRetry)) throw error
          await sleep(Math.max(error.retryAfterMs ?? 0, FIRST_WAIT_MS * 2 ** (tries - 1)))
        }
      }
    },
  }
}

async function fetchResult(address: string, apiKey: string, operation: unknown): Promise<unknown> {
  const gone = (cause: unknown) => new ServiceUnreachable(`The service at ${address}`, { cause })
  const response = await fetch(new URL('/graphql', address), {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(operation),
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
  }).catch((cause) => {
    throw gone(cause)
  })
  const { data, errors } = (await response.json().catch((cause) => {
    throw gone(cause)
  })) as { readonly data?: unknown; readonly errors?: readonly { readonly message: string }[] }
  if (errors?.[0]) throw KisError.fromGraphQL(errors[0])
  return data
}
