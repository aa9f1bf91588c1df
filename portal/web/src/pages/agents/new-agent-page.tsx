import { Link, useNavigate } from '@tanstack/react-router'
import { useAction } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { toast } from '../../ui/toast.tsx'
import { CREATE } from './base/agents.ts'
import { AgentForm } from './editor/agent-form.tsx'
import { NEW_AGENT } from './editor/draft.ts'

export function NewAgentPage() {
  const text = useText()
  const navigate = useNavigate()
  const create = useAction(CREATE)
  return (
    <>
      <PageHeader title={text('agents.create')} lead={text('agents.createLead')} back={<Link to="/agents">{text('agents.title')}</Link>} />
      <AgentForm
        start={NEW_AGENT}
        isNew
        action={text('agents.create')}
        isBusy={create.isRunning}
        failure={create.failure}
        onSubmit={async (input) => {
          const created = (await create.run({ input }))?.createAgent
          if (!created) return
          toast(text('agents.created'))
          void navigate({ to: '/agents/$id', params: { id: created.agent.id } })
        }}
      />
    </>
  )
}
