import { CircleAlert, Lock, type LucideIcon, RotateCw, SearchX, WifiOff } from 'lucide-react'
import { type ReactNode, useLayoutEffect, useState } from 'react'
import type { Failure } from '../data/failure.ts'
import type { QueryResult } from '../data/query-result.ts'
import { type MessageId, useText } from '../i18n/text.tsx'
import { Button } from '../ui/button.tsx'
import { classes } from '../ui/classes.ts'
import { Notice, Skeleton } from '../ui/surface.tsx'
import { FailureDetail, FailureText, useFailureText } from './failure-text.tsx'

interface MessageProps {
  readonly icon: LucideIcon
  readonly title: ReactNode
  readonly children?: ReactNode
  readonly actions?: ReactNode
  readonly className?: string
}

function Message({ icon: Icon, title, children, actions, className }: MessageProps) {
  const Heading = useIsWholePage() ? 'h1' : 'h2'
  return (
    <div className={classes('flex flex-col items-center rounded-xl border border-dashed px-6 py-14 text-center', className)}>
      <span className="mb-4 flex size-11 items-center justify-center rounded-full bg-hover text-muted">
        <Icon className="size-5" aria-hidden />
      </span>
      <Heading className="text-base">{title}</Heading>
      {children && <div className="mt-1.5 max-w-md text-sm text-muted">{children}</div>}
      {actions && <div className="mt-5 flex flex-wrap justify-center gap-2">{actions}</div>}
    </div>
  )
}

/** Whether a message stands in the place of a page, which then has no heading of its own. */
function useIsWholePage(): boolean {
  const [isWholePage, setWholePage] = useState(false)
  useLayoutEffect(() => setWholePage(document.querySelector('h1') === null), [])
  return isWholePage
}

/** There is nothing yet: what it would be, and the button that makes the first. */
export function EmptyState(props: MessageProps) {
  return <Message {...props} />
}

/** A failure in the place of a page, with "Try again" where that can help. */
export function ErrorState({ failure, retry }: { readonly failure: Failure; readonly retry?: () => void }) {
  const text = useText()
  const failureText = useFailureText()
  if (failure.code === 'permission_denied') return <NoPermission />
  if (failure.code === 'not_found' || failure.code === 'model_not_found') return <NotFound />
  return (
    <Message
      icon={failure.code === 'unreachable' ? WifiOff : CircleAlert}
      title={failureText(failure)}
      actions={
        retry && (
          <Button icon={RotateCw} onClick={retry}>
            {text('common.tryAgain')}
          </Button>
        )
      }
    >
      <FailureDetail failure={failure} />
    </Message>
  )
}

/** A failure beside what failed, such as in a form. */
export function FailureNotice({ failure, retry }: { readonly failure: Failure | null; readonly retry?: () => void }) {
  const text = useText()
  if (!failure) return null
  return (
    <Notice
      tone="danger"
      icon={<CircleAlert className="size-4 shrink-0" aria-hidden />}
      actions={
        retry && (
          <Button size="small" onClick={retry}>
            {text('common.tryAgain')}
          </Button>
        )
      }
    >
      <FailureText failure={failure} />
    </Notice>
  )
}

export function NoPermission({ scopes = [] }: { readonly scopes?: readonly string[] }) {
  const text = useText()
  return (
    <Message icon={Lock} title={text('state.noPermission')}>
      {text(scopes.length > 0 ? 'state.noPermissionScopes' : 'state.noPermissionHelp', {
        scopes: scopes.map((scope) => text(`scope.${scope}` as MessageId)).join(text('common.listSeparator')),
      })}
    </Message>
  )
}

/** There is no such thing, or it is another organization's: both look the same. */
export function NotFound() {
  const text = useText()
  return (
    <Message
      icon={SearchX}
      title={text('state.notFound')}
      actions={
        <Button asChild>
          <a href="/home">{text('state.goHome')}</a>
        </Button>
      }
    >
      {text('state.notFoundHelp')}
    </Message>
  )
}

/** Lines where a list will be. */
export function Loading({ lines = 4, className }: { readonly lines?: number; readonly className?: string }) {
  const text = useText()
  return (
    <div role="status" className={classes('flex flex-col gap-3', className)}>
      <span className="sr-only">{text('common.loading')}</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines never change places.
        <Skeleton key={line} className={classes('h-10', line % 3 === 2 && 'w-3/4')} />
      ))}
    </div>
  )
}

interface WhenReadyProps<Data> {
  readonly result: QueryResult<Data>
  /** What loads, if it is not a list. */
  readonly loading?: ReactNode
  readonly children: (data: Data) => ReactNode
}

/** Shows an answer when it is here, and until then that it loads, or why it failed. */
export function WhenReady<Data>({ result, loading = <Loading />, children }: WhenReadyProps<Data>) {
  if (result.state === 'loading') return loading
  if (result.state === 'failed') return <ErrorState failure={result.failure} retry={result.retry} />
  return children(result.data)
}
