import { useState } from 'react'
import { useAction, useAnswer } from '../../data/answer.ts'
import { useText } from '../../i18n/text.tsx'
import { Answered, FailureNotice, Loading } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/choices.tsx'
import { ConfirmDialog, Dialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { RoleChoice } from './invite.tsx'
import { CHANGE_ROLE, CREATED_KEYS, type Member, REMOVE } from './people.ts'

interface MemberDialogProps {
  readonly member: Member
  readonly name: string
  readonly onClose: () => void
}

export function RoleDialog({ member, name, isOwner, onClose }: MemberDialogProps & { readonly isOwner: boolean }) {
  const text = useText()
  const [role, setRole] = useState(member.role)
  const change = useAction(CHANGE_ROLE)
  const save = async () => {
    if (!(await change.run({ input: { id: member.id, role } }))) return
    toast(text('people.roleSaved'))
    onClose()
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text('people.roleTitle', { name: name.slice(0, 80) })}
      description={text('people.roleHelp')}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" isBusy={change.isRunning} disabled={role === member.role} onClick={save}>
            {text('people.changeRole')}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <FailureNotice failure={change.failure} />
        <RoleChoice role={role} onChange={setRole} isOwner={isOwner} />
      </div>
    </Dialog>
  )
}

/** Names the keys that the member created: the person has seen their secrets. */
export function RemoveDialog({ member, name, onClose }: MemberDialogProps) {
  const text = useText()
  const [isRevoking, setRevoking] = useState(false)
  const keys = useAnswer(CREATED_KEYS, { id: member.id }, { types: ['ApiKey'] })
  const remove = useAction(REMOVE)
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      isDangerous
      title={text('people.removeTitle', { name: name.slice(0, 80) })}
      description={text('people.removeHelp')}
      action={text('people.remove')}
      onConfirm={async () => {
        if (!(await remove.run({ input: { id: member.id, revokeCreatedKeys: isRevoking } }))) return false
        toast(text('people.removed'))
        return true
      }}
    >
      <div className="flex flex-col gap-3">
        <FailureNotice failure={remove.failure} />
        <Answered answer={keys} loading={<Loading lines={1} />}>
          {({ member }) =>
            member && member.createdApiKeys.length > 0 ? (
              <>
                <p className="text-sm">{text('people.createdKeys', { count: member.createdApiKeys.length })}</p>
                <ul className="flex max-h-32 list-disc flex-col gap-1 overflow-y-auto ps-5 text-sm">
                  {member.createdApiKeys.map(({ id, name }) => (
                    <li key={id}>
                      <UserText>{name}</UserText>
                    </li>
                  ))}
                </ul>
                <Checkbox
                  label={text('people.revokeKeys')}
                  help={text('people.revokeKeysHelp')}
                  checked={isRevoking}
                  onChange={setRevoking}
                />
              </>
            ) : null
          }
        </Answered>
      </div>
    </ConfirmDialog>
  )
}
