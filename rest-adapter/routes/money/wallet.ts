import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import { listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../../http/lists.ts'
import { type Call, ok, type Route } from '../../http/route.ts'
import { unixSeconds } from '../../http/values.ts'

export const LEDGER_ENTRY = 'id kind amount held balance reference at'

type LedgerEntryData = Selected<'LedgerEntry', typeof LEDGER_ENTRY>

const WALLET = gatewayOperation('query Wallet($id: ID) { organization(id: $id) { id createdAt wallet { balance held available } } }')
const ENTRIES = gatewayOperation(`query LedgerEntries($id: ID, $first: Int!, $after: String) {
  organization(id: $id) { wallet { entries(first: $first, after: $after) { edges { cursor node { ${LEDGER_ENTRY} } } ${PAGE_INFO} } } } }`)

export function toLedgerEntry(data: LedgerEntryData) {
  return {
    id: data.id,
    object: 'ledger_entry',
    created_at: unixSeconds(data.at),
    kind: data.kind.toLowerCase(),
    amount_usd: data.amount,
    held_usd: data.held,
    balance_usd: data.balance,
    reference: data.reference,
  }
}

/** Of the organization in the path, or else of the caller's own. */
async function getWallet({ execute, params }: Call) {
  const { organization } = await execute(WALLET, { id: params.id })
  const { id, createdAt, wallet } = organization
  return ok({
    // An organization has one wallet, so its id serves for the wallet.
    id,
    object: 'wallet',
    created_at: unixSeconds(createdAt),
    balance_usd: wallet.balance,
    held_usd: wallet.held,
    available_usd: wallet.available,
  })
}

/** Of the organization in the path, or else of the caller's own. */
async function listEntries({ execute, params, query }: Call) {
  const data = await execute(ENTRIES, { id: params.id, ...pageVariables(query) }, PAGE_NAMES)
  return ok(listByCursor(data.organization.wallet.entries, toLedgerEntry))
}

export const walletRoutes: readonly Route[] = [
  { method: 'GET', path: '/v1/wallet', handle: getWallet },
  { method: 'GET', path: '/v1/wallet/entries', handle: listEntries },
  { method: 'GET', path: '/v1/organizations/{id}/wallet', handle: getWallet },
  { method: 'GET', path: '/v1/organizations/{id}/wallet/entries', handle: listEntries },
]
