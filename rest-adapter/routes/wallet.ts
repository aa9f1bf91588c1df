import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import { listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../http/lists.ts'
import { ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

export const LEDGER_ENTRY = 'id kind amount held balance reference at'

export type LedgerEntryData = Selected<'LedgerEntry', typeof LEDGER_ENTRY>

const WALLET = gatewayOperation('query Wallet { organization { id createdAt wallet { balance held available } } }')
const ENTRIES = gatewayOperation(`query LedgerEntries($first: Int!, $after: String) {
  organization { wallet { entries(first: $first, after: $after) { edges { cursor node { ${LEDGER_ENTRY} } } ${PAGE_INFO} } } } }`)

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

export const walletRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/wallet',
    async handle({ ask }) {
      const { organization } = await ask(WALLET)
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
    },
  },
  {
    method: 'GET',
    path: '/v1/wallet/entries',
    async handle({ ask, query }) {
      const data = await ask(ENTRIES, pageVariables(query), PAGE_NAMES)
      return ok(listByCursor(data.organization.wallet.entries, toLedgerEntry))
    },
  },
]
