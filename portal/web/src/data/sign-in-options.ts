import { useEffect, useState } from 'react'

/** The ways to sign in, from `GET /session/options`. */
interface SignInOptions {
  /** The provider of the organization. Null: there is none. */
  readonly oidc: { readonly name: string } | null
}

/** Returns the ways to sign in. Null: not known yet. `unknown`: the service did not return them. */
export function useSignInOptions(): SignInOptions | 'unknown' | null {
  const [options, setOptions] = useState<SignInOptions | 'unknown' | null>(null)
  useEffect(() => {
    let isCurrent = true
    fetch('/session/options')
      .then((response) => (response.ok ? response.json() : 'unknown'))
      .then(
        (options: SignInOptions | 'unknown') => isCurrent && setOptions(options),
        () => isCurrent && setOptions('unknown'),
      )
    return () => {
      isCurrent = false
    }
  }, [])
  return options
}
