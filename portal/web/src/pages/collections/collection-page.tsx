import { getRouteApi, Link } from '@tanstack/react-router'
import { useScope } from '../../app/session.tsx'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { NotFound, WhenReady } from '../../parts/states.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { COLLECTION, type CollectionFacts } from './common/collections.ts'
import { type CollectionFilters, TABS } from './common/filters.ts'
import { DocumentsTab } from './documents/documents-tab.tsx'
import { EvaluationTab } from './evaluation/evaluation-tab.tsx'
import { SearchTab } from './search/search-tab.tsx'
import { SettingsTab } from './settings/settings-tab.tsx'
import { WebTab } from './web/web-tab.tsx'

const route = getRouteApi('/collections/$id')

export function CollectionPage() {
  const { id } = route.useParams()
  const result = useQueryResult(COLLECTION, { id }, { types: ['Document'] })
  return (
    <WhenReady result={result}>
      {({ collection }) =>
        collection ? (
          <Views key={id} collection={collection} onChanged={result.state === 'ready' ? result.refresh : () => {}} />
        ) : (
          <NotFound />
        )
      }
    </WhenReady>
  )
}

function Views({ collection, onChanged }: { readonly collection: CollectionFacts; readonly onChanged: () => void }) {
  const text = useText()
  const { tab = 'documents' } = route.useSearch()
  const navigate = route.useNavigate()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const { name, code, description, embeddingModel } = collection
  const contents = {
    documents: <DocumentsTab collection={collection} onChanged={onChanged} />,
    web: <WebTab collectionId={collection.id} />,
    search: <SearchTab collection={collection} />,
    evaluation: <EvaluationTab collection={collection} />,
    settings: <SettingsTab collection={collection} onChanged={onChanged} />,
  }
  return (
    <>
      <PageHeader
        title={name}
        heading={
          // A name in the other direction begins where the page's lines begin.
          <span className="flex">
            <UserText className="line-clamp-2 whitespace-normal">{name}</UserText>
          </span>
        }
        back={<Link to="/collections">{text('collections.back')}</Link>}
        lead={
          <>
            {description && (
              <span className="mb-2 block">
                <UserText isWhole>{description}</UserText>
              </span>
            )}
            <span className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
              <Code>{code}</Code>
              {embeddingModel ? (
                <span className="inline-flex min-w-0 items-center gap-2">
                  <Code className="font-sans">{embeddingModel.id}</Code>
                  <ResidencyBadge residency={embeddingModel.residency} />
                </span>
              ) : (
                text('collections.modelGone')
              )}
            </span>
          </>
        }
      />
      <Tabs
        label={text('collections.tabs')}
        value={tab}
        // Each tab keeps its own part of the address.
        onChange={(tab) =>
          void navigate({
            search: (now: CollectionFilters) => ({ ...now, tab: tab === 'documents' ? undefined : tab }),
            resetScroll: false,
          })
        }
        tabs={TABS.filter((each) => mayWrite || each !== 'settings').map((value) => ({
          value,
          label: text(`collections.tab.${value}`),
          content: contents[value],
        }))}
      />
    </>
  )
}
