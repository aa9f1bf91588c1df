import type { Failure } from '../data/failure.ts'
import { useFindText } from '../i18n/text.tsx'
import { harmless } from './user-text.tsx'

/** Codes whose sentence says less than the service's own, which names the value that is wrong. */
const SAY_MORE =
  /^(?:invalid_(?!api_key)|missing_|unsupported_|unknown_|integer_|string_|array_|already_|in_use|run_|engine_|content_|residency_|permission_|output_|payload_)/

type Told = Pick<Failure, 'code' | 'param'>

/**
 * The sentence of a failure in the reader's language. A message `error.<code>.<field>` is for the failures of one field
 * whose cause is known, such as an address.
 */
export function useFailureText(): (failure: Told) => string {
  const find = useFindText()
  return ({ code, param }) => {
    const field = param?.split('.').at(-1)
    return (field && find(`error.${code}.${field}`)) || find(`error.${code}`) || ''
  }
}

/** What the service itself says, which is English. */
export function ServiceText({ children }: { readonly children: string }) {
  return (
    <bdi dir="ltr" lang="en" className="wrap-anywhere whitespace-pre-wrap">
      {harmless(children)}
    </bdi>
  )
}

/** Why something failed, in the reader's language, and below it what the service itself says where that is more. */
export function FailureText({ failure }: { readonly failure: Told & Pick<Failure, 'message'> }) {
  const failureText = useFailureText()
  return (
    <>
      <span className="block">{failureText(failure)}</span>
      <FailureDetail failure={failure} />
    </>
  )
}

/** What the service itself says of a failure, where that is more than the sentence of its code. */
export function FailureDetail({ failure: { code, message } }: { readonly failure: Told & Pick<Failure, 'message'> }) {
  if (!message || !SAY_MORE.test(code)) return null
  return (
    <span className="mt-0.5 block opacity-85">
      <ServiceText>{message}</ServiceText>
    </span>
  )
}
