import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function WalletPage() {
  const text = useText()
  return <PageHeader title={text('wallet.title')} lead={text('wallet.lead')} />
}
