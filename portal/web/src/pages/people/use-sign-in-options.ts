import { useEffect, useState } from 'react'

/** Whether people can sign in with an account of their company. Null: not known yet. */
export function useHasOidc(): boolean | null {
  const [has, setHas] = useState<boolean | null>(null)
  useEffect(() => {
    let isCurrent = true
    fetch('/session/options')
      .then((response) => response.json())
      .then(
        ({ oidc }: { oidc: unknown }) => isCurrent && setHas(Boolean(oidc)),
        () => {},
      )
    return () => {
      isCurrent = false
    }
  }, [])
  return has
}
