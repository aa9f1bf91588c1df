import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function AgentsPage() {
  const text = useText()
  return <PageHeader title={text('agents.title')} lead={text('agents.lead')} />
}
