import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readText } from '../../data/search-params.ts'

/** A path of the portal itself: after signing in, a link must not lead to another site. */
const OWN_PATH = /^\/(?![/\\])/

/** Why a sign-in at a provider failed, as in the address. */
const SIGN_IN_ERRORS = [
  ...(['not_a_member', 'invitation_invalid', 'email_not_verified', 'organization_suspended', 'organization_full'] as const),
  ...(['cancelled', 'expired', 'issuer_unavailable', 'issuer_refused', 'unavailable'] as const),
] as const
const MAX_TOKEN = 100

interface Search {
  readonly next?: string
  readonly error?: (typeof SIGN_IN_ERRORS)[number]
  /** The token of an invitation. */
  readonly invitation?: string
}

function readSearch({ next, error, invitation }: Readonly<Record<string, unknown>>): Search {
  const path = readText(next)
  const token = readText(invitation)
  return {
    next: path && OWN_PATH.test(path) && !path.startsWith('/sign-in') ? path : undefined,
    error: SIGN_IN_ERRORS.find((each) => each === error),
    invitation: token && token.length <= MAX_TOKEN ? token : undefined,
  }
}

export const signInRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/sign-in',
    validateSearch: readSearch,
    component: lazyPage(() => import('./sign-in-page.tsx'), 'SignInPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/sign-in/organization',
    validateSearch: (search: Readonly<Record<string, unknown>>) => ({ next: readSearch(search).next }),
    component: lazyPage(() => import('./organization-page.tsx'), 'OrganizationPage', ['people']),
  }),
] as const
