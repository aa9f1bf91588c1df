import { type ConnectionData, listByCursor, PAGE_INFO, PAGE_NAMES, pageVariables } from '../http/lists.ts'
import { ok, type Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

export const LEDGER_ENTRY = 'id kind amount held balance reference at'

export interface LedgerEntryData {
  readonly id: string
  readonly kind: string
  readonly amount: string
  readonly held: string
  readonly balance: string
  readonly reference: string
  readonly at: string
}

interface WalletOwnerData {
  readonly id: string
  readonly createdAt: string
  readonly wallet: { readonly balance: string; readonly held: string; readonly available: string }
}

const WALLET = 'query Wallet { organization { id createdAt wallet { balance held available } } }'
const ENTRIES = `query LedgerEntries($first: Int!, $after: String) {
  organization { wallet { entries(first: $first, after: $after) { edges { cursor node { ${LEDGER_ENTRY} } } ${PAGE_INFO} } } } }`

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
      const { organization } = await ask<{ organization: WalletOwnerData }>(WALLET)
      const { id, createdAt, wallet } = organization
      return ok({
        // An organization has one wallet, which therefore goes by its id.
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
      const data = await ask<{ organization: { wallet: { entries: ConnectionData<LedgerEntryData> } } }>(
        ENTRIES,
        pageVariables(query),
        PAGE_NAMES,
      )
      return ok(listByCursor(data.organization.wallet.entries, toLedgerEntry))
    },
  },
]
