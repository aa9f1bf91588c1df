import { getRouteApi } from '@tanstack/react-router'
import { GitCompare } from 'lucide-react'
import { useQueryResult } from '../../../data/query-result.ts'
import { type MessageId, useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../../parts/data-table.tsx'
import { diffLines } from '../../../parts/diff/diff.ts'
import { NotFound, WhenReady } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { Code, harmless, UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { Sheet } from '../../../ui/dialog.tsx'
import { Badge } from '../../../ui/surface.tsx'
import type { Agent } from '../base/agents.ts'
import { useCollectionNames } from '../base/collection-names.ts'
import { COMPARE, VERSIONS, type VersionFacts, type VersionRow } from './version-queries.ts'

const route = getRouteApi('/agents/$id')

/** The versions of an agent, newest first, and what changed between two of them. */
export function Versions({ agent }: { readonly agent: Agent }) {
  const text = useText()
  const { number } = useFormats()
  const { from, to } = route.useSearch()
  const navigate = route.useNavigate()
  const compare = (from?: number, to?: number) => void navigate({ search: (now) => ({ ...now, from, to }), resetScroll: false })
  const columns = useColumns(
    agent.version,
    (version) => compare(version - 1, version),
    (version) => compare(version, agent.version),
  )
  const paging = usePaging(agent.id, 10)
  const result = useQueryResult(VERSIONS, { id: agent.id, ...paging.variables })
  return (
    <section className="max-w-3xl">
      <h2 className="mb-3 text-lg">{text('agents.versions')}</h2>
      <DataTable
        label={text('agents.versions')}
        result={result}
        page={({ agent }) => agent?.versions ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ version }) => String(version)}
        empty={null}
      />
      <Sheet
        isOpen={from !== undefined && to !== undefined}
        onClose={() => compare()}
        title={text('agents.diffTitle', { from: number(from ?? 0), to: number(to ?? 0) })}
        size="large"
      >
        {from !== undefined && to !== undefined && <Diff agentId={agent.id} from={from} to={to} />}
      </Sheet>
    </section>
  )
}

function Diff({ agentId, from, to }: { readonly agentId: string; readonly from: number; readonly to: number }) {
  const text = useText()
  const names = useCollectionNames()
  const result = useQueryResult(COMPARE, { id: agentId, from, to })
  return (
    <WhenReady result={result}>
      {({ agent }) => {
        if (!agent?.before || !agent.after) return <NotFound />
        const [before, after] = [factsOf(agent.before, names), factsOf(agent.after, names)]
        const changed = before.flatMap(({ label, value }, index) =>
          value === after[index]!.value ? [] : [{ label, before: value, after: after[index]!.value }],
        )
        if (changed.length === 0) return <p className="text-muted">{text('agents.noDiff')}</p>
        return (
          <div className="flex flex-col gap-6">
            {changed.map(({ label, before, after }) => (
              <section key={label}>
                <h3 className="mb-2 text-sm font-medium">{text(label)}</h3>
                <Lines before={before} after={after} />
              </section>
            ))}
          </div>
        )
      }}
    </WhenReady>
  )
}

const SIGNS = { same: ' ', removed: '−', added: '+' } as const

function Lines({ before, after }: { readonly before: string; readonly after: string }) {
  const text = useText()
  return (
    <ol className="overflow-hidden rounded-lg border text-sm">
      {diffLines(before, after).map(({ kind, text: line }, index) => (
        <li
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a comparison keep their places.
          key={index}
          className={classes(
            'grid grid-cols-[1.75rem_minmax(0,1fr)] py-0.5 pe-3',
            kind === 'removed' && 'bg-danger-soft text-danger-text',
            kind === 'added' && 'bg-success-soft text-success-text',
          )}
        >
          <span className="text-center select-none">
            <span aria-hidden>{SIGNS[kind]}</span>
            {kind !== 'same' && <span className="sr-only">{text(`agents.diff.${kind}`)}</span>}
          </span>
          <span dir="auto" className="min-h-5 wrap-anywhere whitespace-pre-wrap">
            {harmless(line)}
          </span>
        </li>
      ))}
    </ol>
  )
}

interface Fact {
  readonly label: MessageId
  readonly value: string
}

/** A version as texts that can be compared. */
function factsOf(version: VersionFacts, names: ReadonlyMap<string, string>): readonly Fact[] {
  const { name, model, instructions, collections, mcpServers, responseSchema, maxCost, maxSteps } = version
  const servers = mcpServers.map(({ name, url, headerNames, allowedTools }) =>
    [`${name} ${url}`, ...headerNames.map((header) => `  ${header}: ••••`), ...(allowedTools ?? []).map((tool) => `  ${tool}`)].join('\n'),
  )
  return [
    { label: 'agents.name', value: name },
    { label: 'agents.model', value: model?.id ?? '—' },
    { label: 'agents.instructions', value: instructions },
    { label: 'agents.collections', value: collections.map((each) => names.get(each?.id ?? '') ?? each?.id ?? '—').join('\n') },
    { label: 'agents.schema', value: responseSchema === null ? '' : JSON.stringify(responseSchema, null, 2) },
    { label: 'agents.servers', value: servers.join('\n') },
    { label: 'agents.maxCost', value: maxCost },
    { label: 'agents.maxSteps', value: String(maxSteps) },
    { label: 'agents.maxOutputTokens', value: version.maxOutputTokens?.toString() ?? '' },
    { label: 'agents.temperature', value: version.temperature?.toString() ?? '' },
    { label: 'agents.topP', value: version.topP?.toString() ?? '' },
  ]
}

function useColumns(
  current: number,
  compareWithPrevious: (version: number) => void,
  compareWithCurrent: (version: number) => void,
): readonly Column<VersionRow>[] {
  const text = useText()
  const { number } = useFormats()
  return [
    {
      id: 'version',
      header: text('agents.version'),
      cell: ({ version, name }) => (
        <>
          <span className="flex items-center gap-2 font-medium">
            {number(version)}
            {version === current && <Badge tone="accent">{text('agents.current')}</Badge>}
          </span>
          <div className="text-xs text-muted">
            <UserText className="max-w-40">{name}</UserText>
          </div>
        </>
      ),
    },
    {
      id: 'model',
      header: text('agents.model'),
      cell: ({ model }) => (model ? <Code className="max-w-40 font-sans">{model.id}</Code> : '—'),
      shown: 'wide',
    },
    { id: 'at', header: text('agents.changedAt'), cell: ({ createdAt }) => <DateTime at={createdAt} />, shown: 'wide' },
    {
      id: 'compare',
      header: '',
      cell: ({ version }) => (
        <span className="flex flex-wrap justify-end gap-2">
          {version > 1 && (
            <Button
              size="small"
              icon={GitCompare}
              aria-label={text('agents.changesOf', { version: number(version) })}
              onClick={() => compareWithPrevious(version)}
            >
              {text('agents.changes')}
            </Button>
          )}
          {version < current - 1 && (
            <Button
              size="small"
              aria-label={text('agents.compareOf', { version: number(version) })}
              onClick={() => compareWithCurrent(version)}
            >
              {text('agents.compare')}
            </Button>
          )}
        </span>
      ),
    },
  ]
}
