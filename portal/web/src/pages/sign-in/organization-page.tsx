import { getRouteApi, Navigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useSession } from '../../app/session.tsx'
import { Logo } from '../../app/shell.tsx'
import { addressOfOrganization, MEMBERSHIPS } from '../../data/memberships.ts'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Badge } from '../../ui/surface.tsx'

const route = getRouteApi('/sign-in/organization')
const ENTRY = 'flex min-h-12 items-center gap-3 px-4 py-2 hover:bg-hover'

/** Lets a person who has just signed in choose among their organizations. Who has one goes on. */
export function OrganizationPage() {
  const text = useText()
  const { session } = useSession()
  const { next = '/home' } = route.useSearch()
  const result = useQueryResult(MEMBERSHIPS, {}, { pause: session.state !== 'signed-in' })
  useEffect(() => {
    document.title = `${text('signIn.organization')} · ${text('app.name')}`
  }, [text])
  if (session.state === 'signed-out') return <Navigate to="/sign-in" search={{ next }} replace />
  const viewer = result.state === 'ready' ? result.data.viewer : null
  const memberships = viewer?.member?.memberships ?? []
  if (result.state === 'ready' && memberships.length < 2) return <Navigate to={next} replace />
  return (
    <main className="mx-auto flex w-full max-w-sm flex-col px-4 pt-[12dvh] pb-12">
      <Logo />
      <h1 className="mt-5 mb-5 text-2xl font-semibold tracking-tight rtl:tracking-normal">{text('signIn.organization')}</h1>
      <WhenReady result={result}>
        {() => (
          <ul className="divide-y overflow-hidden rounded-xl border bg-surface">
            {memberships.map(({ organizationId, organizationName, role }) => (
              <li key={organizationId}>
                <a
                  className={ENTRY}
                  // Who stays needs no other session.
                  href={organizationId === viewer?.organization?.id ? next : addressOfOrganization(organizationId, next)}
                >
                  <UserText className="min-w-0 grow font-medium">{organizationName}</UserText>
                  <Badge>{text(`people.role.${role}`)}</Badge>
                </a>
              </li>
            ))}
          </ul>
        )}
      </WhenReady>
    </main>
  )
}
