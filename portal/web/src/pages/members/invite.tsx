import { type FormEvent, useState } from 'react'
import { useAction } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { useFieldFailures } from '../../parts/field-failure.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { Button } from '../../ui/button.tsx'
import { RadioGroup } from '../../ui/choices.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input } from '../../ui/input.tsx'
import { INVITE, ROLES, type Role } from './members.ts'

const MAX_EMAIL = 254
const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@]+$/

interface InviteProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly isOwner: boolean
  /** The link to pass on, which the service shows once. */
  readonly onInvited: (invited: { readonly name: string; readonly secret: string }) => void
}

export function InviteDialog({ isOpen, onClose, ...form }: InviteProps) {
  const text = useText()
  const [isBusy, setBusy] = useState(false)
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={text('people.invite')}
      description={text('people.inviteHelp')}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="invite-form" isBusy={isBusy}>
            {text('people.inviteAction')}
          </Button>
        </>
      }
    >
      <Fields {...form} onBusy={setBusy} />
    </Dialog>
  )
}

function Fields({
  isOwner,
  onInvited,
  onBusy,
}: Pick<InviteProps, 'isOwner' | 'onInvited'> & { readonly onBusy: (isBusy: boolean) => void }) {
  const text = useText()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('EDITOR')
  const [isTried, setTried] = useState(false)
  const invite = useAction(INVITE)
  const failures = useFieldFailures(invite.failure, ['email', 'role'])
  const isEmail = EMAIL.test(email.trim()) && email.trim().length <= MAX_EMAIL
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isEmail) return
    onBusy(true)
    const invited = await invite.run({ input: { email: email.trim(), role } })
    onBusy(false)
    if (!invited?.inviteMember) return
    const { token, link } = invited.inviteMember
    onInvited({ name: email.trim(), secret: link ?? `${location.origin}/sign-in?invitation=${token}` })
  }
  return (
    <form id="invite-form" noValidate onSubmit={submit} className="flex flex-col gap-5">
      <FailureNotice failure={failures.rest} />
      <Field
        label={text('people.email')}
        help={text('people.emailHelp')}
        isRequired
        error={isTried && !isEmail ? text('people.problem.email') : failures.of('email')}
      >
        {(control) => (
          <Input {...control} type="email" dir="ltr" autoComplete="off" value={email} onChange={({ target }) => setEmail(target.value)} />
        )}
      </Field>
      <fieldset>
        <legend className="mb-2 text-sm font-medium">{text('people.role')}</legend>
        <RoleChoice role={role} onChange={setRole} isOwner={isOwner} />
        {failures.of('role') && (
          <p role="alert" className="mt-2 text-sm text-danger-text">
            {failures.of('role')}
          </p>
        )}
      </fieldset>
    </form>
  )
}

interface RoleChoiceProps {
  readonly role: Role
  readonly onChange: (role: Role) => void
  /** Only owners make owners. */
  readonly isOwner: boolean
}

/** The roles, each with what it may do. */
export function RoleChoice({ role, onChange, isOwner }: RoleChoiceProps) {
  const text = useText()
  return (
    <RadioGroup
      label={text('people.role')}
      value={role}
      onChange={onChange}
      options={ROLES.filter((value) => isOwner || value !== 'OWNER').map((value) => ({
        value,
        label: text(`people.role.${value}`),
        help: text(`people.role.${value}.help`),
      }))}
    />
  )
}
