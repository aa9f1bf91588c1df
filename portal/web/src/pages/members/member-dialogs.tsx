import { useState } from 'react'
import { holds } from '../../app/session.tsx'
import type { ResultOf } from '../../data/graphql.ts'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { FailureNotice, Loading, WhenReady } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/choices.tsx'
import { ConfirmDialog, Dialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { RoleChoice } from './invite.tsx'
import { CHANGE_ROLE, CREATED_KEYS, type Member, REMOVE, REVOKE_KEY } from './members.ts'

interface MemberDialogProps {
  readonly member: Member
  readonly name: string
  readonly onClose: () => void
}

export function RoleDialog({ member, name, isOwner, onClose }: MemberDialogProps & { readonly isOwner: boolean }) {
  const text = useText()
  const [role, setRole] = useState(member.role)
  const change = useAction(CHANGE_ROLE)
  const [exceedingKeys, setExceedingKeys] = useState<readonly CreatedKey[]>([])
  const save = async () => {
    const done = await change.run({ input: { id: member.id, role } })
    if (!done) return
    toast(text('people.roleSaved'))
    const { apiKey, createdApiKeys } = done.updateMember.member
    const exceeding = apiKey ? createdApiKeys.filter(({ scopes }) => !scopes.every((scope) => holds(apiKey.scopes, scope))) : createdApiKeys
    if (exceeding.length === 0) onClose()
    else setExceedingKeys(exceeding)
  }
  if (exceedingKeys.length > 0) return <ExceedingKeys keys={exceedingKeys} name={name} onClose={onClose} />
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

type CreatedKey = ResultOf<typeof CHANGE_ROLE>['updateMember']['member']['createdApiKeys'][number]

/** After a role that allows less: the keys that the person created and that may do more. They go on unless revoked. */
function ExceedingKeys({
  keys,
  name,
  onClose,
}: {
  readonly keys: readonly CreatedKey[]
  readonly name: string
  readonly onClose: () => void
}) {
  const text = useText()
  const { number } = useFormats()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set(keys.map(({ id }) => id)))
  const revoking = useAction(REVOKE_KEY)
  const revoke = async () => {
    for (const { id } of keys.filter(({ id }) => chosen.has(id))) {
      if (!(await revoking.run({ id }))) return
      setChosen((now) => new Set([...now].filter((each) => each !== id)))
    }
    toast(text('people.keysRevoked', { count: chosen.size, shown: number(chosen.size) }))
    onClose()
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text('people.exceedingTitle')}
      description={text('people.exceedingHelp', { name: name.slice(0, 80) })}
      actions={
        <>
          <Button onClick={onClose}>{text('people.keepKeys')}</Button>
          <Button variant="danger" isBusy={revoking.isRunning} disabled={chosen.size === 0} onClick={revoke}>
            {text('people.revokeChosen', { count: chosen.size, shown: number(chosen.size) })}
          </Button>
        </>
      }
    >
      <div className="flex max-h-64 flex-col gap-2.5 overflow-y-auto">
        <FailureNotice failure={revoking.failure} />
        {keys.map(({ id, name, scopes }) => (
          <Checkbox
            key={id}
            label={<UserText>{name}</UserText>}
            help={scopes.map((scope) => text(`scope.${scope}`)).join(text('common.listSeparator'))}
            checked={chosen.has(id)}
            onChange={(isOn) => setChosen((now) => new Set(isOn ? [...now, id] : [...now].filter((each) => each !== id)))}
          />
        ))}
      </div>
    </Dialog>
  )
}

/** Names the keys that the member created: the person has seen their secrets. */
export function RemoveDialog({ member, name, onClose }: MemberDialogProps) {
  const text = useText()
  const [isRevoking, setRevoking] = useState(false)
  const keys = useQueryResult(CREATED_KEYS, { id: member.id }, { types: ['ApiKey'] })
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
        <WhenReady result={keys} loading={<Loading lines={1} />}>
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
        </WhenReady>
      </div>
    </ConfirmDialog>
  )
}
