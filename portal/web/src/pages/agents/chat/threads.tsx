import { Trash2 } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { usePaging } from '../../../parts/data-table.tsx'
import { FailureNotice, Loading, WhenReady } from '../../../parts/states.tsx'
import { RelativeTime } from '../../../parts/time.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { IconButton } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Pagination } from '../../../ui/pagination.tsx'
import { toast } from '../../../ui/toast.tsx'
import { DELETE_THREAD, THREADS } from '../runs/runs.ts'

interface ThreadsProps {
  readonly agentId: string
  /** The one on the page. */
  readonly shown: string | undefined
  /** How many runs ended on the page: each may have made a thread. */
  readonly ended: number
  readonly onOpen: (id: string | undefined) => void
}

/** The kept conversations of an agent, newest first. */
export function Threads({ agentId, shown, ended, onOpen }: ThreadsProps) {
  const text = useText()
  const [deleting, setDeleting] = useState<string | null>(null)
  const remove = useAction(DELETE_THREAD)
  const paging = usePaging(agentId)
  const result = useQueryResult(THREADS, { id: agentId, ...paging.variables }, { types: ['Thread', 'DeleteThreadPayload'] })
  const refresh = result.state === 'ready' ? result.refresh : null
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the end of a run asks again.
  useEffect(() => {
    if (ended > 0) refresh?.()
  }, [ended])
  return (
    <>
      <WhenReady result={result} loading={<Loading lines={3} />}>
        {({ agent }) => {
          const { edges = [], pageInfo } = agent?.threads ?? {}
          if (edges.length === 0) return <p className="text-sm text-muted">{text('agents.noThreads')}</p>
          return (
            <>
              <ul className="-mx-2 flex flex-col gap-0.5">
                {edges.map(({ node: { id, title, updatedAt } }) => (
                  <li key={id} className={classes('flex items-center rounded-lg hover:bg-hover', id === shown && 'bg-hover')}>
                    <button
                      type="button"
                      aria-current={id === shown ? 'true' : undefined}
                      onClick={() => onOpen(id)}
                      className="min-w-0 grow rounded-lg px-2 py-1.5 text-start text-sm"
                    >
                      <UserText className="block">{title ?? text('agents.untitled')}</UserText>
                      <span className="block text-xs text-muted">
                        <RelativeTime at={updatedAt} />
                      </span>
                    </button>
                    <IconButton label={text('agents.deleteThread')} icon={Trash2} size="small" onClick={() => setDeleting(id)} />
                  </li>
                ))}
              </ul>
              <Pagination
                isBusy={refresh === null}
                onNewer={paging.newer}
                onOlder={pageInfo?.hasNextPage && pageInfo.endCursor ? () => paging.older(pageInfo.endCursor!) : null}
              />
            </>
          )
        }}
      </WhenReady>
      <ConfirmDialog
        isOpen={deleting !== null}
        onClose={() => {
          remove.reset()
          setDeleting(null)
        }}
        title={text('agents.deleteThreadTitle')}
        description={text('agents.deleteThreadHelp')}
        action={text('common.delete')}
        isDangerous
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ id: deleting }))) return false
          toast(text('agents.threadDeleted'))
          refresh?.()
          if (deleting === shown) onOpen(undefined)
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
    </>
  )
}
