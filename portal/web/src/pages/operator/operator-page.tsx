import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function OperatorPage() {
  const text = useText()
  return <PageHeader title={text('operator.title')} lead={text('operator.lead')} />
}
