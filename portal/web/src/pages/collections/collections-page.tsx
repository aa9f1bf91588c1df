import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function CollectionsPage() {
  const text = useText()
  return <PageHeader title={text('collections.title')} lead={text('collections.lead')} />
}
