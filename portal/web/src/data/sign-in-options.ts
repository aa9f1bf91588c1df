import { useEffect, useState } from 'react'

/** How people may sign in, as `GET /session/options` says. */
interface SignInOptions {
  /** The provider of their company. Null: there is none. */
  readonly oidc: { readonly name: string } | null
}

/** Null: not known yet. `unknown`: the service does not say. */
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
