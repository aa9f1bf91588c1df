import { LogOut, MonitorSmartphone } from 'lucide-react'
import { useState } from 'react'
import { useScope, useSession } from '../../app/session.tsx'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, usePaging } from '../../parts/data-table.tsx'
import { EmptyState, FailureNotice } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { harmless, UserText } from '../../parts/user-text.tsx'
import { IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { readBrowser } from './browser.ts'
import { END_SESSION, SESSIONS, type Session } from './organization.ts'

/** The browsers that are signed in: with your key, or as an admin with any key of the organization. */
export function Sessions() {
  const text = useText()
  const isAdmin = useScope('ADMIN')
  const { signOut } = useSession()
  const [ending, setEnding] = useState<Session | null>(null)
  const end = useAction(END_SESSION)
  const paging = usePaging()
  const result = useQueryResult(SESSIONS, paging.variables, { types: ['Session'] })
  const columns = useColumns(isAdmin, setEnding)
  return (
    <>
      <p className="mb-4 max-w-2xl text-sm text-muted">{text(isAdmin ? 'sessions.leadAdmin' : 'sessions.lead')}</p>
      {end.failure && (
        <div className="mb-3">
          <FailureNotice failure={end.failure} />
        </div>
      )}
      <DataTable
        label={text('sessions.title')}
        result={result}
        page={({ sessions }) => sessions}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={MonitorSmartphone} title={text('sessions.none')}>
            {text('sessions.noneHelp')}
          </EmptyState>
        }
      />
      <ConfirmDialog
        isOpen={ending !== null}
        onClose={() => setEnding(null)}
        title={text(ending?.isCurrent ? 'sessions.endThisTitle' : 'sessions.endTitle')}
        description={text(ending?.isCurrent ? 'sessions.endThisHelp' : 'sessions.endHelp')}
        action={text(ending?.isCurrent ? 'shell.signOut' : 'sessions.end')}
        isDangerous
        onConfirm={async () => {
          if (!ending) return true
          if (ending.isCurrent) {
            await signOut()
            return true
          }
          if (await end.run({ id: ending.id })) toast(text('sessions.ended'))
          return true
        }}
      />
    </>
  )
}

function useColumns(isAdmin: boolean, onEnd: (session: Session) => void): readonly Column<Session>[] {
  const text = useText()
  const nameOf = (userAgent: string | null) => {
    const { browser, system } = readBrowser(userAgent)
    if (browser && system) return text('sessions.browserOn', { browser, system })
    return browser ?? system ?? text('sessions.unknownBrowser')
  }
  const columns: readonly (Column<Session> | false)[] = [
    {
      id: 'browser',
      header: text('sessions.browser'),
      cell: ({ userAgent, isCurrent }) => (
        <span className="flex flex-wrap items-center gap-2">
          <span title={userAgent ? harmless(userAgent) : undefined} className="font-medium">
            {nameOf(userAgent)}
          </span>
          {isCurrent && <Badge tone="accent">{text('sessions.this')}</Badge>}
        </span>
      ),
    },
    isAdmin && {
      id: 'key',
      header: text('sessions.key'),
      cell: ({ apiKey }) => apiKey && <UserText className="max-w-72">{apiKey.name}</UserText>,
    },
    { id: 'used', header: text('sessions.used'), cell: ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} />, shown: 'wide' },
    { id: 'since', header: text('sessions.since'), cell: ({ createdAt }) => <RelativeTime at={createdAt} />, shown: 'wide' },
    { id: 'expires', header: text('sessions.expires'), cell: ({ expiresAt }) => <RelativeTime at={expiresAt} />, shown: 'wide' },
    {
      id: 'end',
      header: '',
      isNumber: true,
      cell: (session) => (
        <IconButton
          size="small"
          label={text(session.isCurrent ? 'shell.signOut' : 'sessions.end')}
          icon={LogOut}
          mirrors
          onClick={() => onEnd(session)}
        />
      ),
    },
  ]
  return columns.filter((column) => column !== false)
}
