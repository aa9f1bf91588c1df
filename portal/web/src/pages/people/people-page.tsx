import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function PeoplePage() {
  const text = useText()
  return <PageHeader title={text('people.title')} lead={text('people.lead')} />
}
