import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function ModelsPage() {
  const text = useText()
  return <PageHeader title={text('models.title')} lead={text('models.lead')} />
}
