import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'

export function OrganizationPage() {
  const text = useText()
  return <PageHeader title={text('organization.title')} lead={text('organization.lead')} />
}
