import type { ReactNode } from 'react'
import type { Failure } from '../data/failure.ts'
import { FailureText } from './failure-text.tsx'

/** Splits a failure: the problem of a field is shown at the field, others in a notice. */
export function useFieldFailures(
  failure: Failure | null,
  fields: readonly string[],
): { readonly of: (field: string) => ReactNode; readonly rest: Failure | null } {
  const field = failure?.param ? fields.find((each) => failure.param === each || failure.param?.endsWith(`.${each}`)) : undefined
  return {
    of: (name) => (failure && name === field ? <FailureText failure={failure} /> : undefined),
    rest: field ? null : failure,
  }
}
