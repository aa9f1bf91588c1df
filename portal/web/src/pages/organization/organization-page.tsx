import { getRouteApi } from '@tanstack/react-router'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { NotFound, WhenReady } from '../../parts/states.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { General } from './general.tsx'
import { ORGANIZATION } from './organization.ts'
import { Plan } from './plan.tsx'
import { Residency } from './residency.tsx'
import { Sessions } from './sessions.tsx'

const route = getRouteApi('/organization')

export function OrganizationPage() {
  const text = useText()
  const { tab = 'settings' } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <>
      <PageHeader title={text('organization.title')} lead={text('organization.lead')} />
      <Tabs
        label={text('organization.title')}
        value={tab}
        onChange={(tab) => void navigate({ search: { tab: tab === 'settings' ? undefined : tab }, resetScroll: false })}
        tabs={[
          { value: 'settings', label: text('organization.settings'), content: <Settings /> },
          { value: 'sessions', label: text('sessions.title'), content: <Sessions /> },
        ]}
      />
    </>
  )
}

function Settings() {
  const result = useQueryResult(ORGANIZATION, {})
  return (
    <WhenReady result={result}>
      {({ organization }) =>
        organization ? (
          <div className="flex max-w-3xl flex-col gap-4">
            <General organization={organization} />
            <Residency organization={organization} />
            <Plan organization={organization} />
          </div>
        ) : (
          <NotFound />
        )
      }
    </WhenReady>
  )
}
