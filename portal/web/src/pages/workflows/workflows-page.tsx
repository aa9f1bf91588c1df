import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function WorkflowsPage() {
  const text = useText()
  return <PageHeader title={text('workflows.title')} lead={text('workflows.lead')} />
}
