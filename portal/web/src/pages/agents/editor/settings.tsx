import { useAction } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { toast } from '../../../ui/toast.tsx'
import { type Agent, UPDATE } from '../base/agents.ts'
import { AgentForm } from './agent-form.tsx'
import { draftOf } from './draft.ts'

/** The fields of a known agent. Each save makes a version. */
export function Settings({ agent }: { readonly agent: Agent }) {
  const text = useText()
  const update = useAction(UPDATE)
  return (
    <AgentForm
      // Another version begins with its own values.
      key={agent.version}
      start={draftOf(agent)}
      action={text('agents.save')}
      isBusy={update.isRunning}
      failure={update.failure}
      onSubmit={async (input) => {
        if (await update.run({ input: { id: agent.id, ...input } })) toast(text('agents.saved'))
      }}
    />
  )
}
