import { EllipsisVertical, MailX, Plus, UserCog, UserMinus, Users } from 'lucide-react'
import { useState } from 'react'
import { useViewer } from '../../app/session.tsx'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useSignInOptions } from '../../data/sign-in-options.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { type Secret, SecretDialog } from '../../parts/secret-dialog.tsx'
import { EmptyState, FailureNotice } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { Badge, Notice } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { InviteDialog } from './invite.tsx'
import { RemoveDialog, RoleDialog } from './member-dialogs.tsx'
import { INVITATIONS, type Invitation, MEMBERS, type Member, REVOKE_INVITATION, ROLES, VIEWER_ROLE } from './members.ts'

export function MembersPage() {
  const text = useText()
  const [isInviting, setInviting] = useState(false)
  const [secret, setSecret] = useState<Secret | null>(null)
  const options = useSignInOptions()
  const hasOidc = options === 'unknown' || options === null ? null : options.oidc !== null
  const viewer = useQueryResult(VIEWER_ROLE, {}, { types: ['Member'] })
  const own = viewer.state === 'ready' ? viewer.data.viewer?.member : undefined
  // A key of the organization stands as high as an owner. The service decides; this only leaves out what it would refuse.
  const isOwner = own === null || own?.role === 'OWNER'
  return (
    <>
      <PageHeader
        title={text('people.title')}
        lead={text('people.lead')}
        actions={
          <Button variant="primary" icon={Plus} onClick={() => setInviting(true)}>
            {text('people.invite')}
          </Button>
        }
      />
      {hasOidc === false && (
        <div className="mb-6">
          <Notice tone="warning">{text('people.noOidc')}</Notice>
        </div>
      )}
      <Members isOwner={isOwner} />
      <Invitations />
      <Roles />
      <InviteDialog
        isOpen={isInviting}
        onClose={() => setInviting(false)}
        isOwner={isOwner}
        onInvited={(invited) => {
          setInviting(false)
          setSecret(invited)
        }}
      />
      <SecretDialog shown={secret} title={text('people.linkTitle')} onClose={() => setSecret(null)} />
    </>
  )
}

function Members({ isOwner }: { readonly isOwner: boolean }) {
  const text = useText()
  const { id: ownKey } = useViewer()
  const [open, setOpen] = useState<{ readonly step: 'role' | 'remove'; readonly member: Member } | null>(null)
  const paging = usePaging()
  const result = useQueryResult(MEMBERS, paging.variables, { types: ['Member'] })
  const nameOf = ({ name, email }: Member) => name ?? email ?? text('people.unnamed')
  const columns: readonly Column<Member>[] = [
    {
      id: 'name',
      header: text('people.member'),
      cell: (member) => (
        <>
          <span className="flex flex-wrap items-center gap-2">
            <UserText className="max-w-48 font-medium sm:max-w-72">{nameOf(member)}</UserText>
            {member.apiKey?.id === ownKey && <Badge tone="accent">{text('people.you')}</Badge>}
          </span>
          {member.name && member.email && <UserText className="max-w-48 text-xs text-muted sm:max-w-72">{member.email}</UserText>}
        </>
      ),
    },
    { id: 'role', header: text('people.role'), cell: ({ role }) => <Badge>{text(`people.role.${role}`)}</Badge> },
    { id: 'seen', header: text('people.lastSeen'), cell: ({ lastSeenAt }) => <RelativeTime at={lastSeenAt} />, shown: 'wide' },
    { id: 'since', header: text('people.since'), cell: ({ createdAt }) => <RelativeTime at={createdAt} />, shown: 'wide' },
    {
      id: 'actions',
      header: '',
      isNumber: true,
      cell: (member) =>
        (isOwner || member.role !== 'OWNER') && (
          <Menu
            trigger={
              <IconButton label={text('people.actionsOf', { name: nameOf(member).slice(0, 80) })} icon={EllipsisVertical} size="small" />
            }
          >
            <MenuItem icon={UserCog} onSelect={() => setOpen({ step: 'role', member })}>
              {text('people.changeRole')}
            </MenuItem>
            <MenuItem icon={UserMinus} isDangerous onSelect={() => setOpen({ step: 'remove', member })}>
              {text('people.remove')}
            </MenuItem>
          </Menu>
        ),
    },
  ]
  const dialog = open && { member: open.member, name: nameOf(open.member), onClose: () => setOpen(null) }
  return (
    <section aria-labelledby="members" className="mb-8">
      <h2 id="members" className="mb-3 text-lg">
        {text('people.members')}
      </h2>
      <DataTable
        label={text('people.members')}
        result={result}
        page={({ organization }) => organization?.members ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={Users} title={text('people.none')}>
            {text('people.noneHelp')}
          </EmptyState>
        }
      />
      {open?.step === 'role' && dialog && <RoleDialog {...dialog} isOwner={isOwner} />}
      {open?.step === 'remove' && dialog && <RemoveDialog {...dialog} />}
    </section>
  )
}

function Invitations() {
  const text = useText()
  const [revoking, setRevoking] = useState<Invitation | null>(null)
  const revoke = useAction(REVOKE_INVITATION)
  const paging = usePaging()
  const result = useQueryResult(INVITATIONS, paging.variables, { types: ['Invitation'] })
  const columns: readonly Column<Invitation>[] = [
    { id: 'email', header: text('people.email'), cell: ({ email }) => <UserText className="max-w-48 sm:max-w-72">{email}</UserText> },
    { id: 'role', header: text('people.role'), cell: ({ role }) => <Badge>{text(`people.role.${role}`)}</Badge> },
    {
      id: 'by',
      header: text('people.invitedBy'),
      cell: ({ invitedBy }) => invitedBy && <UserText className="max-w-40">{invitedBy.name}</UserText>,
      shown: 'wide',
    },
    {
      id: 'expires',
      header: text('people.expires'),
      cell: ({ expiresAt }) =>
        Date.parse(expiresAt) < Date.now() ? <Badge tone="warning">{text('people.expired')}</Badge> : <RelativeTime at={expiresAt} />,
      shown: 'wide',
    },
    {
      id: 'revoke',
      header: '',
      isNumber: true,
      cell: (invitation) => (
        <IconButton
          size="small"
          label={text('people.revokeOf', { name: invitation.email.slice(0, 80) })}
          icon={MailX}
          onClick={() => setRevoking(invitation)}
        />
      ),
    },
  ]
  return (
    <section aria-labelledby="invitations" className="mb-8">
      <h2 id="invitations" className="mb-3 text-lg">
        {text('people.invitations')}
      </h2>
      {revoke.failure && (
        <div className="mb-3">
          <FailureNotice failure={revoke.failure} />
        </div>
      )}
      <DataTable
        label={text('people.invitations')}
        result={result}
        page={({ organization }) => organization?.invitations ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={<p className="text-sm text-muted">{text('people.noInvitations')}</p>}
      />
      <ConfirmDialog
        isOpen={revoking !== null}
        onClose={() => setRevoking(null)}
        title={text('people.revokeTitle', { name: revoking?.email.slice(0, 80) ?? '' })}
        description={text('people.revokeHelp')}
        action={text('people.revoke')}
        isDangerous
        onConfirm={async () => {
          if (revoking && (await revoke.run({ id: revoking.id }))) toast(text('people.revoked'))
          return true
        }}
      />
    </section>
  )
}

/** What each role may do. */
function Roles() {
  const text = useText()
  return (
    <section aria-labelledby="roles">
      <h2 id="roles" className="mb-3 text-lg">
        {text('people.roles')}
      </h2>
      <dl className="grid gap-x-6 gap-y-3 rounded-xl border bg-surface p-4 text-sm sm:grid-cols-[auto_minmax(0,1fr)] sm:p-5">
        {ROLES.map((role) => (
          <div key={role} className="sm:col-span-2 sm:grid sm:grid-cols-subgrid">
            <dt className="font-medium">{text(`people.role.${role}`)}</dt>
            <dd className="text-muted">{text(`people.role.${role}.help`)}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
