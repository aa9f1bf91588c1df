import { getRouteApi } from '@tanstack/react-router'
import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { TABS, type Tab } from './filters.ts'
import { Health } from './health.tsx'
import { Organizations } from './organizations.tsx'
import { Plans } from './plans.tsx'
import { Queues } from './queues.tsx'

const route = getRouteApi('/operator')
const CONTENTS: Readonly<Record<Tab, () => React.ReactNode>> = {
  organizations: Organizations,
  health: Health,
  queue: Queues,
  plans: Plans,
}

export function OperatorPage() {
  const text = useText()
  const { tab = 'organizations' } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <>
      <PageHeader title={text('operator.title')} lead={text('operator.lead')} />
      <Tabs
        label={text('operator.title')}
        value={tab}
        onChange={(next) => void navigate({ search: next === 'organizations' ? {} : { tab: next }, resetScroll: false })}
        tabs={TABS.map((value) => {
          const Content = CONTENTS[value]
          return { value, label: text(`operator.tab.${value}`), content: <Content /> }
        })}
      />
    </>
  )
}
