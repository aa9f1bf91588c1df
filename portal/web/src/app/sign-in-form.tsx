import { Building2, LogIn } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { Failure } from '../data/failure.ts'
import { useSignInOptions } from '../data/sign-in-options.ts'
import { Text, useText } from '../i18n/text.tsx'
import { useFailureText } from '../parts/failure-text.tsx'
import { FailureNotice } from '../parts/states.tsx'
import { UserText } from '../parts/user-text.tsx'
import { Button } from '../ui/button.tsx'
import { Field } from '../ui/field.tsx'
import { Input } from '../ui/input.tsx'
import { Notice } from '../ui/surface.tsx'
import { useSession } from './session.tsx'

/** Signs in with an API key, or at the organization's provider of OpenID Connect if there is one. */
interface SignInFormProps {
  readonly returnTo: string
  /** The token of an invitation. Signing in at the provider accepts it. */
  readonly invitation?: string
}

export function SignInForm({ returnTo, invitation }: SignInFormProps) {
  const text = useText()
  const failureText = useFailureText()
  const { signIn } = useSession()
  const options = useSignInOptions()
  const [key, setKey] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isMissing, setMissing] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setFailure(null)
    setMissing(key.trim() === '')
    if (key.trim() === '') return
    setBusy(true)
    setFailure(await signIn(key.trim()))
    setBusy(false)
  }
  // A key works even if the service does not name the options.
  const oidc = options === 'unknown' ? null : options?.oidc
  const provider = oidc && (
    <Button asChild size="large" variant={invitation ? 'primary' : 'secondary'}>
      <a href={addressOf({ returnTo, invitation })}>
        <Building2 className="size-4" aria-hidden />
        <span>
          <Text id="signIn.with" values={{ name: <UserText key="name">{oidc.name}</UserText> }} />
        </span>
      </a>
    </Button>
  )
  if (invitation && options) {
    return (
      <div className="flex flex-col gap-4">
        <Notice tone={oidc ? 'info' : 'warning'}>{text(oidc ? 'signIn.invited' : 'signIn.invitedNoOidc')}</Notice>
        {provider}
      </div>
    )
  }
  const isWrongKey = failure?.code === 'invalid_api_key'
  return (
    <div className="flex flex-col gap-4">
      <form onSubmit={submit} noValidate className="flex flex-col gap-4">
        <Field
          label={text('signIn.key')}
          help={text('signIn.keyHelp')}
          isRequired
          error={isMissing ? text('signIn.keyMissing') : isWrongKey ? failureText(failure) : undefined}
        >
          {(control) => (
            <Input
              {...control}
              type="password"
              dir="ltr"
              autoComplete="current-password"
              spellCheck={false}
              autoFocus
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          )}
        </Field>
        {!isWrongKey && <FailureNotice failure={failure} />}
        <Button type="submit" variant="primary" size="large" isBusy={isBusy}>
          {!isBusy && <LogIn className="size-4 rtl:-scale-x-100" aria-hidden />}
          {text('signIn.action')}
        </Button>
      </form>
      {provider && (
        <>
          <p className="text-center text-sm text-muted">{text('signIn.or')}</p>
          {provider}
        </>
      )}
    </div>
  )
}

function addressOf({ returnTo, invitation }: SignInFormProps): string {
  return `/session/oidc?${new URLSearchParams({ return: returnTo, ...(invitation && { invitation }) })}`
}
