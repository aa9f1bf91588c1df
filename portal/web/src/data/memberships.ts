import { graphql, type ResultOf } from './graphql.ts'

/** The organizations of the signed-in person, the last used first. A key alone has none. */
export const MEMBERSHIPS = graphql(`
  query Memberships {
    viewer {
      id
      organization { id }
      member { id memberships { organizationId organizationName role } }
    }
  }
`)

export type Membership = NonNullable<NonNullable<ResultOf<typeof MEMBERSHIPS>['viewer']>['member']>['memberships'][number]

/**
 * Returns the address that signs in again, to another organization of the person. The provider knows the person, so
 * most providers show no prompt.
 */
export function addressOfOrganization(organizationId: string, returnTo: string): string {
  return `/session/oidc?${new URLSearchParams({ organization: organizationId, return: returnTo })}`
}
