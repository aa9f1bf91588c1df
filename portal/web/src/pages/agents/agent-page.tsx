import { getRouteApi, Link } from '@tanstack/react-router'
import { MoreHorizontal, Trash2 } from 'lucide-react'
import { Suspense, useState } from 'react'
import { lazyPart } from '../../data/lazy-part.ts'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { FailureNotice, Loading, NotFound, WhenReady } from '../../parts/states.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { toast } from '../../ui/toast.tsx'
import { AGENT, type Agent, DELETE } from './base/agents.ts'
import { Chat } from './chat/chat.tsx'
import { Runs } from './runs/runs-tab.tsx'
import { UseIt } from './use-it.tsx'

const route = getRouteApi('/agents/$id')

/** The form is large, and most come to chat. */
const Settings = lazyPart(() => import('./editor/settings.tsx'), 'Settings')
const Versions = lazyPart(() => import('./versions/versions.tsx'), 'Versions')

export function AgentPage() {
  const text = useText()
  const { id } = route.useParams()
  const { tab = 'chat' } = route.useSearch()
  const navigate = route.useNavigate()
  const result = useQueryResult(AGENT, { id })
  const back = <Link to="/agents">{text('agents.title')}</Link>
  if (result.state !== 'ready' || !result.data.agent) {
    return (
      <>
        <PageHeader title={text('agents.agent')} back={back} />
        <WhenReady result={result}>{() => <NotFound />}</WhenReady>
      </>
    )
  }
  const { agent } = result.data
  return (
    <>
      <PageHeader
        title={agent.name}
        heading={
          // A name in the other direction begins where the page's lines begin.
          <span className="flex">
            <UserText className="line-clamp-2 whitespace-normal">{agent.name}</UserText>
          </span>
        }
        lead={
          <span className="flex items-center gap-1">
            <Code>{`agent/${agent.code}`}</Code>
            <CopyButton value={`agent/${agent.code}`} label={text('agents.copyCode')} />
          </span>
        }
        back={back}
        actions={<Actions agent={agent} />}
      />
      <Tabs
        label={text('agents.agent')}
        value={tab}
        onChange={(tab) => void navigate({ search: { tab }, resetScroll: false })}
        tabs={[
          { value: 'chat', label: text('agents.tab.chat'), content: <Chat agent={agent} /> },
          { value: 'runs', label: text('agents.tab.runs'), content: <Runs agentId={agent.id} /> },
          {
            value: 'settings',
            label: text('agents.tab.settings'),
            content: (
              <Suspense fallback={<Loading lines={6} />}>
                <div className="flex flex-col gap-10">
                  <Settings agent={agent} />
                  <Versions agent={agent} />
                </div>
              </Suspense>
            ),
          },
          { value: 'use', label: text('agents.tab.use'), content: <UseIt agent={agent} /> },
        ]}
      />
    </>
  )
}

function Actions({ agent: { id, name } }: { readonly agent: Agent }) {
  const text = useText()
  const navigate = route.useNavigate()
  const [isDeleting, setDeleting] = useState(false)
  const remove = useAction(DELETE)
  return (
    <>
      <Menu trigger={<IconButton variant="secondary" label={text('common.actions')} icon={MoreHorizontal} />}>
        <MenuItem icon={Trash2} isDangerous onSelect={() => setDeleting(true)}>
          {text('agents.delete')}
        </MenuItem>
      </Menu>
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => {
          remove.reset()
          setDeleting(false)
        }}
        title={text('agents.deleteTitle', { name })}
        description={text('agents.deleteHelp')}
        action={text('agents.delete')}
        isDangerous
        onConfirm={async () => {
          if (!(await remove.run({ id }))) return false
          toast(text('agents.deleted'))
          void navigate({ to: '/agents' })
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
    </>
  )
}
