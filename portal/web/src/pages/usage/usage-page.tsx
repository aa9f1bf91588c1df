import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function UsagePage() {
  const text = useText()
  return <PageHeader title={text('usage.title')} lead={text('usage.lead')} />
}
