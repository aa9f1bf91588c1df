import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { NewSession } from '../sessions/session-store.ts'
import type { ClaimedPerson } from './claims.ts'

interface SignInInput extends ClaimedPerson {
  readonly issuer: string
  readonly subject: string
  readonly invitation: string | null
  readonly organizationId: string | null
  readonly userAgent: string | null
}

/** Why a sign-in is refused. */
export type SignInRefusal = 'not_a_member' | 'invitation_invalid' | 'email_not_verified' | 'organization_suspended' | 'organization_full'

/** Signs a person in. Billing decides who may sign in and with which rights. */
export type MemberSignIn = (input: SignInInput, context: Pick<LinkContext, 'requestId' | 'signal'>) => Promise<NewSession | SignInRefusal>
