import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react'
import { Provider } from 'urql'
import { useCalm } from '../data/calm.ts'
import { type Connected, connect } from '../data/client.ts'
import { connection } from '../data/connection.ts'
import { VIEWER_QUERY } from '../data/early.ts'
import { type Failure, failureOf, toFailure, UNREACHABLE } from '../data/failure.ts'
import { graphql, type ResultOf } from '../data/graphql.ts'

const VIEWER = graphql(VIEWER_QUERY)

export type Viewer = NonNullable<ResultOf<typeof VIEWER>['viewer']>
export type Scope = Viewer['scopes'][number]

/** `ended`: the viewer was signed in until now; what is on the page stays behind the dialog to sign in again. */
type State =
  | { readonly state: 'loading' }
  | { readonly state: 'signed-out' }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'signed-in' | 'ended'; readonly viewer: Viewer }

interface Session {
  readonly session: State
  /** Null: it worked. */
  readonly signIn: (apiKey: string) => Promise<Failure | null>
  readonly signOut: () => Promise<void>
  readonly retry: () => void
}

const Context = createContext<Session | null>(null)

/** What the viewer may do changes with their role, which no event tells. Refused calls that come together cause one look. */
const REFRESH_AFTER_MS = 1_000

interface SessionProviderProps {
  /** Who is signed in, if that is known already. */
  readonly viewer: Viewer | null
  readonly children: ReactNode
}

/** Knows who is signed in, and gives all below it the client of their session. */
export function SessionProvider({ viewer, children }: SessionProviderProps) {
  const [session, setSession] = useState<State>(viewer ? { state: 'signed-in', viewer } : { state: 'loading' })
  const end = useCallback(
    () => setSession((now) => ('viewer' in now ? { state: 'ended', viewer: now.viewer } : { state: 'signed-out' })),
    [],
  )
  const connectedRef = useRef<Connected>(undefined)
  const organization = useRef(viewer?.organization?.id)
  const isKnown = useRef(viewer !== null)
  const applyViewer = useCallback((viewer: Viewer) => {
    // Another organization's pages: nothing of the earlier one may stay on them.
    if (organization.current && organization.current !== viewer.organization?.id) return location.assign('/home')
    organization.current = viewer.organization?.id
    setSession((now) =>
      now.state === 'signed-in' && JSON.stringify(now.viewer) === JSON.stringify(viewer) ? now : { state: 'signed-in', viewer },
    )
  }, [])
  const refreshViewer = useCalm(async () => {
    if (session.state !== 'signed-in') return
    const { data } = await connectedRef.current!.client.query(VIEWER, {}, { requestPolicy: 'network-only' }).toPromise()
    if (data?.viewer) applyViewer(data.viewer)
  }, REFRESH_AFTER_MS)
  const [connected, setConnected] = useState<Connected>(() => connect(end, refreshViewer))

  const load = useCallback(
    async ({ client }: Connected) => {
      const { data, error } = await client.query(VIEWER, {}, { requestPolicy: 'network-only' }).toPromise()
      if (data?.viewer) return applyViewer(data.viewer)
      const failure = error && toFailure(error)
      if (!failure || failure.code === 'invalid_api_key') return setSession({ state: 'signed-out' })
      setSession({ state: 'failed', failure })
    },
    [applyViewer],
  )
  useEffect(() => {
    connectedRef.current = connected
    if (!isKnown.current) void load(connected)
    isKnown.current = false
  }, [load, connected])
  useEffect(() => {
    const back = () => document.visibilityState === 'visible' && refreshViewer()
    const unsubscribe = connection.onReturn(refreshViewer)
    window.addEventListener('focus', back)
    document.addEventListener('visibilitychange', back)
    return () => {
      unsubscribe()
      window.removeEventListener('focus', back)
      document.removeEventListener('visibilitychange', back)
    }
  }, [refreshViewer])

  const signIn = useCallback(
    async (apiKey: string) => {
      try {
        const response = await fetch('/session', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ api_key: apiKey }),
        })
        if (!response.ok) return await failureOf(response)
      } catch {
        return UNREACHABLE
      }
      connected.close()
      setConnected(connect(end, refreshViewer))
      return null
    },
    [connected, end, refreshViewer],
  )
  const signOut = useCallback(async () => {
    await fetch('/session', { method: 'DELETE' }).catch(() => null)
    connected.close()
    location.assign('/sign-in')
  }, [connected])
  const retry = useCallback(() => {
    setSession({ state: 'loading' })
    void load(connected)
  }, [load, connected])

  const value = useMemo(() => ({ session, signIn, signOut, retry }), [session, signIn, signOut, retry])
  return (
    <Context.Provider value={value}>
      <Provider value={connected.client}>{children}</Provider>
    </Context.Provider>
  )
}

export function useSession(): Session {
  const session = useContext(Context)
  if (!session) throw new Error('useSession needs a SessionProvider above it.')
  return session
}

/** Whoever is signed in. Pages are shown to nobody else. */
export function useViewer(): Viewer {
  const { session } = useSession()
  if (!('viewer' in session)) throw new Error('useViewer needs somebody who is signed in.')
  return session.viewer
}

/** Whether the scopes allow what needs `scope`: `ADMIN` holds all others but `OPERATOR`. */
export function holds(scopes: readonly Scope[], scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'OPERATOR' && scopes.includes('ADMIN'))
}

export function useScope(scope: Scope): boolean {
  return holds(useViewer().scopes, scope)
}
