import { useState } from 'react'
import { PUBLIC_URL } from '../../data/public-url.ts'
import { useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Source } from '../../parts/source.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import type { Agent } from './base/agents.ts'
import { type Snippet, snippetsFor } from './snippets.ts'

/** Examples of programs that call the agent, to copy. */
export function UseIt({ agent }: { readonly agent: Agent }) {
  const text = useText()
  const [shown, setShown] = useState<Snippet['id']>('curl')
  const snippets = snippetsFor(agent, PUBLIC_URL, text('agents.use.question'))
  return (
    <div className="max-w-3xl">
      <p className="mb-4 text-sm text-muted">{text('agents.use.key')}</p>
      <Tabs
        label={text('agents.tab.use')}
        value={shown}
        onChange={setShown}
        tabs={snippets.map(({ id, source }) => ({
          value: id,
          label: text(`agents.use.${id}`),
          content: (
            <>
              <div className="mb-2 flex items-center justify-between gap-3">
                <p className="text-sm text-muted">{text(`agents.use.${id}Help`)}</p>
                <CopyButton value={source} label={text('agents.use.copy')} />
              </div>
              <Source label={text(`agents.use.${id}`)} source={source} />
            </>
          ),
        }))}
      />
    </div>
  )
}
