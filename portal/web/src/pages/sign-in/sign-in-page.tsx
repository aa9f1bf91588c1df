import { getRouteApi, Navigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { LanguageButton, PreferencesMenu } from '../../app/preferences-menu.tsx'
import { useSession } from '../../app/session.tsx'
import { Logo } from '../../app/shell.tsx'
import { SignInForm } from '../../app/sign-in-form.tsx'
import { useText } from '../../i18n/text.tsx'
import { Notice } from '../../ui/surface.tsx'

const route = getRouteApi('/sign-in')

export function SignInPage() {
  const text = useText()
  const { session } = useSession()
  const { next = '/home', error, invitation } = route.useSearch()
  useEffect(() => {
    document.title = `${text('signIn.title')} · ${text('app.name')}`
  }, [text])
  // An invitation is for the owner of its email address, not for the person who is signed in now.
  if (session.state === 'signed-in' && !invitation) return <Navigate to={next} replace />
  return (
    <div className="flex min-h-dvh flex-col">
      <header className="flex justify-end gap-1 p-3">
        <LanguageButton />
        <PreferencesMenu />
      </header>
      <main className="flex grow items-start justify-center px-4 pt-[8dvh] pb-12">
        <div className="w-full max-w-sm">
          <Logo />
          <h1 className="mt-5 text-2xl font-semibold tracking-tight rtl:tracking-normal">{text('signIn.title')}</h1>
          <p className="mt-1 mb-6 text-muted">{text('app.name')}</p>
          {error && (
            <div className="mb-5">
              <Notice tone="danger">{text(`signIn.error.${error}`)}</Notice>
            </div>
          )}
          {/* An invited person has chosen the organization by the invitation. */}
          <SignInForm returnTo={invitation ? next : `/sign-in/organization?${new URLSearchParams({ next })}`} invitation={invitation} />
        </div>
      </main>
    </div>
  )
}
