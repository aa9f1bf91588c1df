import { hasScope, type Principal } from '../../common/identity/principal.ts'

/**
 * Returns whether the caller may read a record that other subgraphs refer to: the organization that owns it may, and so
 * may operators. To others it looks absent.
 */
export function mayRead(principal: Principal, organizationId: string): boolean {
  return organizationId === principal.organizationId || hasScope(principal, 'operator')
}
