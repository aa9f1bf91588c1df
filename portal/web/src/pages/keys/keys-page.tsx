import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function KeysPage() {
  const text = useText()
  return <PageHeader title={text('keys.title')} lead={text('keys.lead')} />
}
