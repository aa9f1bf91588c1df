import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function HomePage() {
  const text = useText()
  return <PageHeader title={text('home.title')} lead={text('home.lead')} />
}
