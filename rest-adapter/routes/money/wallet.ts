import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import * as operations from '../../contract/billing.ts'
import { listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../../http/lists.ts'
import { type Call, ok, type Route, route } from '../../http/route.ts'
import { lowerCase, unixSeconds } from '../../http/values.ts'

export const LEDGER_ENTRY = 'id kind amount held balance reference at'

type LedgerEntryData = Selected<'LedgerEntry', typeof LEDGER_ENTRY>

const WALLET = gatewayOperation('query Wallet($id: ID) { organization(id: $id) { id createdAt wallet { balance held available } } }')
const ENTRIES = gatewayOperation(`query LedgerEntries($id: ID, $first: Int!, $after: String) {
  organization(id: $id) { wallet { entries(first: $first, after: $after) { edges { cursor node { ${LEDGER_ENTRY} } } ${PAGE_INFO} } } } }`)

export function toLedgerEntry(data: LedgerEntryData): operations.LedgerEntry {
  return {
    id: data.id,
    object: 'ledger_entry',
    created_at: unixSeconds(data.at),
    kind: lowerCase(data.kind),
    amount_usd: data.amount,
    held_usd: data.held,
    balance_usd: data.balance,
    reference: data.reference,
  }
}

/** Returns the wallet of the organization in the path, or else of the caller's own. */
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

/** Lists the entries of the organization in the path, or else of the caller's own. */
async function listEntries({ execute, params, query }: Call) {
  const data = await execute(ENTRIES, { id: params.id, ...pageVariables(query) }, PAGE_NAMES)
  return ok(listByCursor(data.organization.wallet.entries, toLedgerEntry))
}

export const walletRoutes: readonly Route[] = [
  route({ operation: operations.getWallet, handle: getWallet }),
  route({ operation: operations.listLedgerEntries, handle: listEntries }),
  route({ operation: operations.getWalletOfOrganization, handle: getWallet }),
  route({ operation: operations.listLedgerEntriesOfOrganization, handle: listEntries }),
]
