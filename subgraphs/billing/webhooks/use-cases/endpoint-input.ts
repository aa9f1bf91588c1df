import { EVENT_TYPES, type EventType } from '../../../../schema/events.ts'
import { KisError } from '../../../common/errors.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'

/** Longer than any receiver's address, short enough for a log. */
const MAX_URL_CHARACTERS = 2_048

/** Longer than the egress waits for DNS, so that a silent DNS gives an answer, not an abort. */
const REACH_MS = 10_000

/**
 * @throws {KisError} `unsupported_value`: the address is not allowed, or only by https, or has no public host
 * @throws {KisError} `residency_policy_violation`: the organization's policy forbids it
 */
export async function checkUrl(deps: Pick<BillingDeps, 'egress' | 'collections'>, organizationId: string, url: string): Promise<string> {
  const { egress } = deps
  const param = 'url'
  if (url.length > MAX_URL_CHARACTERS)
    throw new KisError('string_above_max_length', `\`url\` has at most ${MAX_URL_CHARACTERS} characters.`, { param })
  if (!egress.allows(url))
    throw new KisError('unsupported_value', 'The address must be a public https address, on port 443, without a user name.', { param })
  if (!egress.isNamed(url) && new URL(url).protocol !== 'https:')
    throw new KisError('unsupported_value', 'Webhooks are sent by https; by http only to hosts that the operator has named.', { param })
  if (!(await maySendTo(deps, organizationId, url)))
    throw new KisError(
      'residency_policy_violation',
      'Events of a `local_only` organization may only go to hosts that the operator has named.',
      { param },
    )
  if (!(await egress.mayReach(url, AbortSignal.timeout(REACH_MS))))
    throw new KisError('unsupported_value', 'The host of the address is unknown, or not public.', { param })
  return url
}

/** Whether the organization's current policy allows events to go there. */
export async function maySendTo(
  { egress, collections }: Pick<BillingDeps, 'egress' | 'collections'>,
  organizationId: string,
  url: string,
): Promise<boolean> {
  if (egress.isNamed(url)) return true
  const organization = await collections.organizations.findOne({ _id: organizationId })
  return organization !== null && organization.residencyPolicy !== 'local_only'
}

export function checkEventTypes(types: readonly string[]): readonly EventType[] {
  const known: readonly string[] = EVENT_TYPES
  if (types.length === 0) throw new KisError('invalid_request', 'An endpoint needs at least one event type.', { param: 'eventTypes' })
  types.forEach((type, i) => {
    if (!known.includes(type))
      throw new KisError('unsupported_value', `There is no event type \`${type}\`. The types are ${known.join(', ')}.`, {
        param: `eventTypes[${i}]`,
      })
  })
  return [...new Set(types as readonly EventType[])]
}

export function checkDescription(description: string | null): string | null {
  return description === null ? null : checkName(description, 'description')
}
