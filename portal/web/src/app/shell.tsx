import { Link, Navigate, Outlet, useRouterState } from '@tanstack/react-router'
import { BookOpen, Braces, Building2, LogOut, Menu as MenuIcon, MonitorSmartphone, UserRound, WifiOff } from 'lucide-react'
import { type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { useConnection } from '../data/connection.ts'
import { addressOfOrganization, MEMBERSHIPS } from '../data/memberships.ts'
import { PUBLIC_URL } from '../data/public-url.ts'
import { useQueryResult } from '../data/query-result.ts'
import { Text, useText } from '../i18n/text.tsx'
import { ErrorState, Loading, NoPermission } from '../parts/states.tsx'
import { Code, UserText } from '../parts/user-text.tsx'
import { Button, IconButton } from '../ui/button.tsx'
import { classes } from '../ui/classes.ts'
import { Dialog, Sheet } from '../ui/dialog.tsx'
import { Menu, MenuItem, MenuSeparator } from '../ui/menu.tsx'
import { Skeleton } from '../ui/surface.tsx'
import { useIsWide } from '../ui/wide.ts'
import { findPage, PAGE_GROUPS } from './pages.ts'
import { PreferencesMenu } from './preferences-menu.tsx'
import { holds, useSession, useViewer } from './session.tsx'
import { SignInForm } from './sign-in-form.tsx'

/** What is around each page. Whoever is not signed in sees the sign-in page only. */
export function Shell() {
  const { session, retry } = useSession()
  const { pathname, href } = useRouterState({ select: ({ location }) => location })
  const isOpen = useRouterState({ select: ({ matches }) => matches.some(({ routeId }) => routeId === '/sign-in') })
  // On the way there the earlier page is still open, which needs somebody who is signed in.
  if (pathname === '/sign-in') return isOpen ? <Outlet /> : <Splash />
  if (session.state === 'loading') return <Splash />
  if (session.state === 'signed-out') return <Navigate to="/sign-in" search={{ next: href }} replace />
  if (session.state === 'failed') {
    return (
      <main className="mx-auto max-w-xl p-6 pt-[15dvh]">
        <ErrorState failure={session.failure} retry={retry} />
      </main>
    )
  }
  if (pathname === '/sign-in/organization') {
    return (
      <Suspense fallback={<Splash />}>
        <Outlet />
      </Suspense>
    )
  }
  return (
    <Frame>
      {session.state === 'ended' && <SignInAgain returnTo={href} />}
      <Guard path={pathname} />
    </Frame>
  )
}

function Guard({ path }: { readonly path: string }) {
  const { scopes } = useViewer()
  const missing = findPage(path)?.scopes.filter((scope) => !holds(scopes, scope)) ?? []
  if (missing.length > 0) return <NoPermission scopes={missing} />
  return (
    <Suspense fallback={<Loading lines={6} />}>
      <Outlet />
    </Suspense>
  )
}

function SignInAgain({ returnTo }: { readonly returnTo: string }) {
  const text = useText()
  return (
    <Dialog isOpen isModal size="small" onClose={() => {}} title={text('signIn.endedTitle')} description={text('signIn.ended')}>
      <SignInForm returnTo={returnTo} />
    </Dialog>
  )
}

function Frame({ children }: { readonly children: ReactNode }) {
  const text = useText()
  const isWide = useIsWide()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const main = useRef<HTMLElement>(null)
  const shown = useRef(path)
  useEffect(() => {
    if (shown.current === path) return
    shown.current = path
    setMenuOpen(false)
    // A screen reader goes on where the new page begins.
    main.current?.focus({ preventScroll: true })
  }, [path])
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_minmax(0,1fr)]">
      <a
        href="#main"
        className="fixed start-3 top-3 z-50 -translate-y-20 rounded-lg bg-accent px-4 py-2 text-accent-ink focus-visible:translate-y-0"
      >
        {text('shell.skip')}
      </a>
      {isWide && (
        <aside className="sticky top-0 flex h-dvh flex-col border-e bg-surface">
          <Navigation />
        </aside>
      )}
      <div className="flex min-w-0 flex-col">
        <header className="sticky top-0 z-30 flex h-14 items-center gap-2 border-b bg-surface px-3 lg:hidden">
          <IconButton label={text('shell.menu')} icon={MenuIcon} onClick={() => setMenuOpen(true)} />
          <Brand />
          <span className="grow" />
          <PreferencesMenu />
        </header>
        <Sheet isOpen={isMenuOpen} onClose={() => setMenuOpen(false)} side="start" title={text('app.name')}>
          <div className="-mx-3 flex h-full flex-col">
            <Navigation isInSheet />
          </div>
        </Sheet>
        <LostConnection />
        <main id="main" ref={main} tabIndex={-1} className="w-full max-w-7xl grow 2xl:mx-auto px-4 py-6 outline-none sm:px-8 sm:py-8">
          {children}
        </main>
      </div>
    </div>
  )
}

function Brand() {
  const { organization } = useViewer()
  const text = useText()
  return (
    <Link to="/home" className="flex min-w-0 items-center gap-2.5 rounded-lg p-1 font-semibold">
      <Logo />
      {organization ? <UserText className="min-w-0">{organization.name}</UserText> : text('app.name')}
    </Link>
  )
}

export function Logo() {
  return (
    <svg viewBox="0 0 32 32" className="size-7 shrink-0" aria-hidden>
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <path d="M9 9h4v5.6L18.4 9h5l-6.2 6.6L23.6 23h-5L13 16.6V23H9z" className="fill-accent-ink" />
    </svg>
  )
}

const ENTRY = 'flex h-9 items-center gap-2.5 rounded-lg px-2.5 text-sm text-muted hover:bg-hover hover:text-ink'

/** Pages of the service beside the portal. They take its session. */
const DOCS = [
  { path: `${PUBLIC_URL}/docs`, title: 'shell.docs', icon: BookOpen },
  { path: '/graphql', title: 'shell.graphql', icon: Braces },
] as const

function Navigation({ isInSheet }: { readonly isInSheet?: boolean }) {
  const text = useText()
  const { scopes } = useViewer()
  const groups = PAGE_GROUPS.map((pages) => pages.filter((page) => page.scopes.every((scope) => holds(scopes, scope))))
  return (
    <>
      {!isInSheet && (
        <div className="flex h-14 items-center px-3">
          <Brand />
        </div>
      )}
      <nav aria-label={text('shell.navigation')} className="grow overflow-y-auto px-3 pb-3">
        {groups
          .filter((pages) => pages.length > 0)
          .map((pages, index) => (
            <ul key={pages[0]?.path} className={classes('flex flex-col gap-0.5', index > 0 && 'mt-3 border-t pt-3')}>
              {pages.map(({ path, title, icon: Icon }) => (
                <li key={path}>
                  <Link to={path} className={ENTRY} activeProps={{ className: 'bg-hover font-medium text-ink!' }}>
                    <Icon className="size-4.5 shrink-0" aria-hidden />
                    {text(title)}
                  </Link>
                </li>
              ))}
            </ul>
          ))}
        <ul className="mt-3 flex flex-col gap-0.5 border-t pt-3">
          {DOCS.map(({ path, title, icon: Icon }) => (
            <li key={path}>
              <a href={path} className={ENTRY}>
                <Icon className="size-4.5 shrink-0" aria-hidden />
                {text(title)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="flex items-center gap-1 border-t p-3">
        <Account />
        {!isInSheet && <PreferencesMenu />}
      </div>
    </>
  )
}

function Account() {
  const text = useText()
  const { name, last4 } = useViewer()
  const { signOut } = useSession()
  return (
    <Menu
      align="start"
      trigger={
        <Button variant="ghost" className="min-w-0 shrink grow justify-start px-2 font-normal">
          <UserRound className="size-4 shrink-0 text-muted" aria-hidden />
          <UserText className="min-w-0">{name}</UserText>
        </Button>
      }
    >
      {/* A member's key has no secret. */}
      {last4 !== '' && (
        <p className="px-2 py-1.5 text-sm text-muted">
          <Text id="shell.key" values={{ last4: <Code key="last4">{`…${last4}`}</Code> }} />
        </p>
      )}
      <MenuItem asChild>
        <Link to="/organization" search={{ tab: 'sessions' }}>
          <MonitorSmartphone className="size-4 text-muted" aria-hidden />
          {text('sessions.title')}
        </Link>
      </MenuItem>
      <MenuItem icon={LogOut} onSelect={signOut}>
        {text('shell.signOut')}
      </MenuItem>
      <OtherOrganizations />
    </Menu>
  )
}

/** Where else the person is a member. They are asked for when the menu opens. */
function OtherOrganizations() {
  const text = useText()
  const result = useQueryResult(MEMBERSHIPS, {})
  const viewer = result.state === 'ready' ? result.data.viewer : null
  const others = viewer?.member?.memberships.filter(({ organizationId }) => organizationId !== viewer.organization?.id) ?? []
  if (others.length === 0) return null
  return (
    <>
      <MenuSeparator />
      <p className="px-2 pt-1 pb-0.5 text-xs text-muted">{text('shell.otherOrganizations')}</p>
      {others.map(({ organizationId, organizationName }) => (
        <MenuItem key={organizationId} asChild>
          <a href={addressOfOrganization(organizationId, '/home')}>
            <Building2 className="size-4 shrink-0 text-muted" aria-hidden />
            <UserText className="min-w-0 max-w-56">{organizationName}</UserText>
          </a>
        </MenuItem>
      ))}
    </>
  )
}

/** Says that the service does not answer. It goes away by itself. */
function LostConnection() {
  const text = useText()
  const state = useConnection()
  return (
    <div role="status" className="sticky top-14 z-20 lg:top-0">
      {state === 'lost' && (
        <p className="flex items-center justify-center gap-2 bg-warning-soft px-4 py-2 text-sm text-warning-text">
          <WifiOff className="size-4 shrink-0" aria-hidden />
          {text('shell.connectionLost')}
        </p>
      )}
    </div>
  )
}

function Splash() {
  const text = useText()
  return (
    <div role="status" className="grid min-h-dvh lg:grid-cols-[15rem_1fr]">
      <span className="sr-only">{text('common.loading')}</span>
      <div className="hidden border-e bg-surface lg:block" />
      <div className="flex flex-col gap-4 p-8">
        <Skeleton className="h-8 w-48" />
        <Skeleton className="h-4 w-80 max-w-full" />
        <Skeleton className="mt-4 h-64" />
      </div>
    </div>
  )
}
