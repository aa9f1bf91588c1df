import type { MemberSignIn, SignInRefusal } from '../../gateway/sign-in/member-sign-in.ts'
import { billingOperation } from '../../schema/operations.ts'
import { type Link, request } from '../../subgraphs/common/link/link.ts'

const SIGN_IN = billingOperation(
  'mutation SignIn($input: SignInInput!) { signIn(input: $input) { refusal opened { token session { id expiresAt } } } }',
)

/** Signs members in by billing, which stores the members and their sessions. */
export function signInBy(billing: Link): MemberSignIn {
  return async ({ assigned, assignedRole, ...input }, context) => {
    const variables = { input: { ...input, assigned: [...assigned], assignedRole: assignedRole.toUpperCase() } } as never
    const { signIn } = await request(billing, { query: SIGN_IN, variables }, { caller: { service: 'gateway' }, ...context })
    if (!signIn.opened) return (signIn.refusal ?? 'NOT_A_MEMBER').toLowerCase() as SignInRefusal
    const { token, session } = signIn.opened
    return { id: session.id, token, expiresAt: new Date(session.expiresAt) }
  }
}
