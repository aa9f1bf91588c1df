import { trackReads } from '../settings/environment.ts'
import { readPlaces } from '../settings/variables.ts'
import { rotateKeptSecret } from './rotate-kept-secret.ts'
import type { Service } from './service.ts'

type Say = (line: string) => void

/** How a person reads the kinds. */
const KINDS = {
  API_KEYS: 'API keys',
  INVITATIONS: 'invitations',
  WEBHOOK_ENDPOINTS: 'webhook endpoints',
  AGENTS: 'agents with headers',
  AGENT_VERSIONS: 'versions of such agents',
} as const
/** Nobody else may read what is written. */
const GROUP_AND_OTHERS = 0o077
/** The service counts no further. */
const MAX_COUNTED = 100_000

interface Rotation {
  readonly state: 'NONE' | 'NEXT_ACCEPTED' | 'MOVING' | 'MOVED'
  readonly parts: readonly { readonly kind: keyof typeof KINDS; readonly current: number; readonly left: number }[]
}

interface Progress {
  readonly billingSecretRotation: Rotation
  readonly inferenceSecretRotation: Rotation
  readonly keysOfPreviousSecret: readonly {
    readonly apiKeyId: string
    readonly organizationId: string
    readonly name: string
    readonly lastUsedAt: string | null
  }[]
}

const ROTATION = 'state parts { kind current left }'
const PROGRESS = `query SecretRotation {
  billingSecretRotation { ${ROTATION} }
  inferenceSecretRotation { ${ROTATION} }
  keysOfPreviousSecret { apiKeyId organizationId name lastUsedAt }
}`
const FINISH = 'mutation FinishSecretRotation { finishSecretRotation { revokedKeys revokedInvitations hasMore } }'

/** Prints how far a rotation has come. True: none is under way, or the previous secret can be taken away. */
export async function showRotation(service: Service, json: boolean, say: Say): Promise<boolean> {
  const progress = await service.ask<Progress>(PROGRESS, {})
  const rotations = [progress.billingSecretRotation, progress.inferenceSecretRotation]
  const isOver = rotations.every(({ state }) => state !== 'MOVING')
  if (json) {
    say(JSON.stringify({ isOver, billing: rotations[0], inference: rotations[1], keys: progress.keysOfPreviousSecret }))
    return isOver
  }
  for (const { kind, current, left } of rotations.flatMap(({ parts }) => parts))
    say(`${KINDS[kind]}: ${counted(current)} on the current secret, ${counted(left)} left`)
  for (const { apiKeyId, organizationId, name, lastUsedAt } of progress.keysOfPreviousSecret)
    say(`  left: ${apiKeyId} of ${organizationId}, last used ${lastUsedAt ?? 'never'}: ${name}`)
  say(conclusion(rotations))
  return isOver
}

/**
 * Revokes what works only with the previous secret.
 * @throws {KisError} see `finishSecretRotation`
 */
export async function finishRotation(service: Service, say: Say): Promise<void> {
  const sum = { revokedKeys: 0, revokedInvitations: 0 }
  for (let hasMore = true; hasMore; ) {
    const { finishSecretRotation: step } = await service.ask<{ finishSecretRotation: typeof sum & { hasMore: boolean } }>(FINISH, {})
    sum.revokedKeys += step.revokedKeys
    sum.revokedInvitations += step.revokedInvitations
    hasMore = step.hasMore
  }
  say(`revoked ${sum.revokedKeys} keys and ${sum.revokedInvitations} invitations`)
}

/** Gives the data folder a new secret. @throws {Error} as `rotateKeptSecret`, or the secret is not in the data folder */
export function rotateSecret(environment: NodeJS.ProcessEnv, say: Say): void {
  if (trackReads(environment).env.KIS_SECRET)
    throw new Error('The secret comes from KIS_SECRET, not from the data folder: docs/operate/secrets.md says how to rotate it there.')
  process.umask(GROUP_AND_OTHERS)
  const dataDirectory = readPlaces(environment).KIS_DATA_DIR
  const { secret, previous } = rotateKeptSecret({ dataDirectory })
  say(`${secret} is new, and ${previous} has the one before. Restart the service: it moves what depends on the old one, and removes`)
  say('that file once nothing does. `kis secret` says how far it is. Keep the old secret as long as you keep backups from before.')
}

function conclusion(rotations: readonly Rotation[]): string {
  const has = (state: Rotation['state']) => rotations.some((each) => each.state === state)
  if (rotations.some(({ state, parts }) => state === 'MOVING' && parts.length === 0)) return 'The stores are still being looked through.'
  if (has('MOVING')) return 'The previous secret is still needed. Keys and invitations move as they are used; the rest moves by itself.'
  if (has('MOVED')) return 'Nothing is left: take KIS_SECRET_PREVIOUS away. A previous secret in the data folder is removed by the service.'
  if (has('NEXT_ACCEPTED')) return 'The next secret is accepted. Once all processes accept it, make it KIS_SECRET.'
  return 'No rotation is under way.'
}

function counted(count: number): string {
  return count < MAX_COUNTED ? String(count) : `${MAX_COUNTED} or more`
}
