import { hasScope, type Principal } from '../../common/identity/principal.ts'

/**
 * What other subgraphs point to is read by the organization that has it, and by operators. To others it looks absent.
 */
export function mayRead(principal: Principal, organizationId: string): boolean {
  return organizationId === principal.organizationId || hasScope(principal, 'operator')
}
