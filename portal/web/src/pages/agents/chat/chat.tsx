import { getRouteApi } from '@tanstack/react-router'
import { MessageSquareText, PanelRight, Plus } from 'lucide-react'
import { useState } from 'react'
import { useText } from '../../../i18n/text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Sheet } from '../../../ui/dialog.tsx'
import type { Agent } from '../base/agents.ts'
import { Conversation } from './conversation.tsx'
import { Threads } from './threads.tsx'

const route = getRouteApi('/agents/$id')

/** A chat with an agent, in conversations that the service stores. */
export function Chat({ agent }: { readonly agent: Agent }) {
  const text = useText()
  const { thread, run } = route.useSearch()
  const navigate = route.useNavigate()
  const [isListOpen, setListOpen] = useState(false)
  /** The conversation on the page. It stays the same when the address gets the thread `named` that it has become. */
  const [shown, setShown] = useState<{ key: number; thread?: string; named?: string }>({ key: 0, thread })
  const [ended, setEnded] = useState(0)
  if (shown.thread !== thread) setShown({ key: thread && shown.named === thread ? shown.key : shown.key + 1, thread })

  const open = (id: string | undefined) => {
    setListOpen(false)
    setShown({ key: shown.key + 1, thread })
    void navigate({ search: { tab: 'chat', thread: id }, resetScroll: false })
  }
  const list = <Threads agentId={agent.id} shown={thread} ended={ended} onOpen={open} />
  return (
    <div className="grid gap-8 lg:grid-cols-[minmax(0,1fr)_15rem]">
      <div className="flex min-w-0 flex-col">
        <div className="mb-4 flex gap-2 lg:hidden">
          <Button size="small" icon={Plus} onClick={() => open(undefined)}>
            {text('agents.newThread')}
          </Button>
          <Button size="small" icon={PanelRight} onClick={() => setListOpen(true)}>
            {text('agents.threads')}
          </Button>
        </div>
        <Conversation
          key={shown.key}
          agent={agent}
          threadId={thread}
          runId={run}
          onRun={(run) => void navigate({ search: (now) => ({ ...now, tab: 'chat', run }), replace: true, resetScroll: false })}
          onEnded={(id) => {
            setShown((now) => ({ ...now, named: id ?? undefined }))
            setEnded((count) => count + 1)
            void navigate({ search: { tab: 'chat', thread: id ?? thread }, replace: true, resetScroll: false })
          }}
        />
      </div>
      <aside className="hidden lg:block">
        <Button icon={Plus} className="mb-4 w-full" onClick={() => open(undefined)}>
          {text('agents.newThread')}
        </Button>
        <h2 className="mb-2 flex items-center gap-2 text-sm text-muted">
          <MessageSquareText className="size-4" aria-hidden />
          {text('agents.threads')}
        </h2>
        {list}
      </aside>
      <Sheet isOpen={isListOpen} onClose={() => setListOpen(false)} title={text('agents.threads')} size="small">
        {list}
      </Sheet>
    </div>
  )
}
