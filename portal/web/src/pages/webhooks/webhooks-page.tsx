import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function WebhooksPage() {
  const text = useText()
  return <PageHeader title={text('webhooks.title')} lead={text('webhooks.lead')} />
}
