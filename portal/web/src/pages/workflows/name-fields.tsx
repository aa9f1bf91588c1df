import type { ReactNode } from 'react'
import type { Failure } from '../../data/failure.ts'
import { useText } from '../../i18n/text.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { Field } from '../../ui/field.tsx'
import { Input } from '../../ui/input.tsx'

const MAX_NAME = 200
const CODE = /^[\w.-]{1,64}$/

interface NameProblems {
  readonly name: ReactNode
  readonly code: string | false
  readonly isRight: boolean
  /** A failure about neither field. */
  readonly rest: Failure | null
}

/** Returns the problems of a workflow's name and code, found here or reported by the service. */
export function useNameProblems(
  { name, code }: { readonly name: string; readonly code: string },
  isTried: boolean,
  failure: Failure | null,
): NameProblems {
  const text = useText()
  const isName = name.trim() !== '' && [...name.trim()].length <= MAX_NAME
  const isCode = CODE.test(code)
  const isTaken = failure?.code === 'already_exists' || failure?.param === 'code'
  return {
    name: (isTried && !isName && text('workflows.problem.name')) || (failure?.param === 'name' && <FailureText failure={failure} />),
    code: (isTried && !isCode && text('workflows.problem.code')) || (isTaken && text('workflows.problem.taken')),
    isRight: isName && isCode,
    rest: isTaken || failure?.param === 'name' ? null : failure,
  }
}

interface NameFieldsProps {
  readonly name: string
  readonly code: string
  readonly onName: (name: string) => void
  readonly onCode: (code: string) => void
  readonly problems: NameProblems
}

export function NameFields({ name, code, onName, onCode, problems }: NameFieldsProps) {
  const text = useText()
  return (
    <>
      <Field label={text('workflows.name')} error={problems.name} isRequired>
        {(control) => <Input {...control} value={name} onChange={({ target }) => onName(target.value)} />}
      </Field>
      <Field label={text('workflows.code')} help={text('workflows.codeHelp')} error={problems.code} isRequired>
        {(control) => <Input {...control} dir="ltr" value={code} onChange={({ target }) => onCode(target.value.trim())} />}
      </Field>
    </>
  )
}
