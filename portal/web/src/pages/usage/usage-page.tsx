import { getRouteApi } from '@tanstack/react-router'
import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import type { Filters } from './filters.ts'
import { Overview } from './overview.tsx'
import { Records } from './records.tsx'

const route = getRouteApi('/usage')

export function UsagePage() {
  const text = useText()
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: Filters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  return (
    <>
      <PageHeader title={text('usage.title')} lead={text('usage.lead')} />
      <Tabs
        label={text('usage.title')}
        value={filters.tab ?? 'overview'}
        onChange={(tab) => change({ tab: tab === 'records' ? 'records' : undefined })}
        tabs={[
          { value: 'overview', label: text('usage.overview'), content: <Overview filters={filters} onChange={change} /> },
          { value: 'records', label: text('usage.records'), content: <Records filters={filters} onChange={change} /> },
        ]}
      />
    </>
  )
}
