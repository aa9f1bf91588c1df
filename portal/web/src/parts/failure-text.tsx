import type { Failure } from '../data/failure.ts'
import { useFindText } from '../i18n/text.tsx'
import { ServiceText } from './service-text.tsx'

/** Codes whose sentence says all. To the others the service adds facts: a value, a limit, a model, a time. */
const SAY_ALL: ReadonlySet<Failure['code']> = new Set([
  ...(['invalid_api_key', 'organization_suspended', 'not_found', 'unknown_url', 'not_offered', 'method_not_allowed'] as const),
  ...(['graphql_parse_failed', 'graphql_validation_failed', 'headers_too_large', 'idempotency_conflict'] as const),
  ...(['request_timeout', 'service_unavailable', 'index_rebuilding', 'part_unavailable', 'internal', 'unreachable'] as const),
])

type ShownFailure = Pick<Failure, 'code' | 'param'>

/**
 * The sentence of a failure in the reader's language. A message `error.<code>.<field>` is for the failures of one field
 * whose cause is known, such as an address.
 */
export function useFailureText(): (failure: ShownFailure) => string {
  const find = useFindText()
  return ({ code, param }) => {
    const field = param?.split('.').at(-1)
    return (field && find(`error.${code}.${field}`)) || find(`error.${code}`) || ''
  }
}

/** Why something failed, in the reader's language, and below it what the service itself says where that is more. */
export function FailureText({ failure }: { readonly failure: ShownFailure & Pick<Failure, 'message'> }) {
  const failureText = useFailureText()
  return (
    <>
      <span className="block">{failureText(failure)}</span>
      <FailureDetail failure={failure} />
    </>
  )
}

/** What the service itself says of a failure, where that is more than the sentence of its code. */
export function FailureDetail({ failure: { code, message } }: { readonly failure: ShownFailure & Pick<Failure, 'message'> }) {
  if (!message || SAY_ALL.has(code)) return null
  return (
    <span className="mt-0.5 block opacity-85">
      <ServiceText>{message}</ServiceText>
    </span>
  )
}
