import '@xyflow/react/dist/base.css'
import {
  type AriaLabelConfig,
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from '@xyflow/react'
import { Flag } from 'lucide-react'
import { Direction } from 'radix-ui'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useText } from '../../i18n/text.tsx'
import { Code } from '../../parts/user-text.tsx'
import { classes } from '../../ui/classes.ts'
import type { Definition, NodeType } from './rules/definition.ts'
import { layOut, listEdges, OUTPUT } from './rules/graph.ts'
import type { ShownNode } from './rules/progress.ts'
import type { NodeState } from './runs.ts'
import { NodeBadge, TYPE_ICONS } from './states.tsx'

const [WIDTH, HEIGHT, COLUMN, ROW] = [208, 64, 272, 96]
/** Below the first zoom, texts are too small to read; the second is for those drawings. */
const [MIN_READABLE, READABLE] = [0.55, 0.8]
const EDGE = 16
const FIT = { padding: 0.12, maxZoom: 1 }
const [MIN_HEIGHT, MAX_HEIGHT] = [260, 560]

interface NodeData extends Record<string, unknown> {
  /** Null: the end of the run. */
  readonly type: NodeType | null
  readonly state: NodeState | null
  readonly isRightToLeft: boolean
}

interface GraphProps {
  readonly definition: Definition
  readonly run?: readonly ShownNode[]
  readonly open: string | undefined
  readonly onOpen: (node: string) => void
}

/** Draws the nodes along the line of text: what waits stands after what it waits for. */
export function GraphView({ definition, run, open, onOpen }: GraphProps) {
  const text = useText()
  const frame = useRef<HTMLElement>(null)
  const isRightToLeft = Direction.useDirection() === 'rtl'
  const { positions, waits } = useMemo(() => {
    const waits = listEdges(definition)
    const isOutput = waits.some(({ to }) => to === OUTPUT)
    return { waits, positions: layOut(definition, waits).filter(({ id }) => isOutput || id !== OUTPUT) }
  }, [definition])
  const states = useMemo(() => new Map(run?.map(({ nodeId, state }) => [nodeId, state])), [run])
  const types = useMemo(() => new Map(definition.nodes.map(({ id, type }) => [id, type])), [definition])

  const nodes = useMemo(
    () =>
      positions.map(({ id, column, row }): Node<NodeData> => {
        const type = types.get(id) ?? null
        const state = states.get(id) ?? null
        return {
          id,
          type: 'node',
          position: { x: (isRightToLeft ? -column : column) * COLUMN, y: row * ROW },
          data: { type, state, isRightToLeft },
          selected: id === open,
          selectable: type !== null,
          focusable: type !== null,
          ariaRole: type === null ? undefined : 'button',
        }
      }),
    [positions, types, states, isRightToLeft, open],
  )
  const edges = useMemo(
    () =>
      waits.map(({ from, to, chosen }): Edge => {
        const isPast = ['DONE', 'FAILED', 'RUNNING'].includes(states.get(to) ?? '')
        const color = isPast ? 'var(--accent)' : 'var(--line-strong)'
        return {
          id: JSON.stringify([from, to, chosen]),
          source: from,
          target: to,
          label: chosen,
          animated: states.get(to) === 'RUNNING',
          focusable: false,
          style: { stroke: color, strokeDasharray: states.get(to) === 'SKIPPED' ? '4 4' : undefined },
          labelStyle: { fill: 'var(--ink-muted)', fontSize: 11 },
          labelBgStyle: { fill: 'var(--surface)' },
          markerEnd: { type: MarkerType.ArrowClosed, color },
        }
      }),
    [waits, states],
  )
  const labels = useMemo(
    (): Partial<AriaLabelConfig> => ({
      'node.a11yDescription.default': text('workflows.graph.nodeHelp'),
      'node.a11yDescription.keyboardDisabled': text('workflows.graph.nodeHelp'),
      'controls.ariaLabel': text('workflows.graph.controls'),
      'controls.zoomIn.ariaLabel': text('workflows.graph.zoomIn'),
      'controls.zoomOut.ariaLabel': text('workflows.graph.zoomOut'),
      'controls.fitView.ariaLabel': text('workflows.graph.fit'),
    }),
    [text],
  )
  const [graph, setGraph] = useState<ReactFlowInstance<Node<NodeData>> | null>(null)
  const isMoved = useRef(false)
  useEffect(() => {
    const box = frame.current
    if (!graph || !box) return
    let width = 0
    const watch = new ResizeObserver(async () => {
      if (isMoved.current || box.clientWidth === width) return
      width = box.clientWidth
      await graph.fitView(FIT)
      if (graph.getZoom() >= MIN_READABLE) return
      // Too small to read as a whole: it shows from its beginning on.
      const x = isRightToLeft ? box.clientWidth - EDGE - WIDTH * READABLE : EDGE
      await graph.setViewport({ x, y: box.clientHeight / 2 - (HEIGHT / 2) * READABLE, zoom: READABLE })
    })
    watch.observe(box)
    return () => watch.disconnect()
  }, [graph, isRightToLeft])
  const rows = Math.max(...positions.map(({ row }) => Math.abs(row))) * 2 + 1
  return (
    <section
      ref={frame}
      aria-label={text('workflows.graph')}
      dir="ltr"
      className="overflow-hidden rounded-xl border bg-surface"
      style={{ height: Math.min(Math.max(rows * ROW + 120, MIN_HEIGHT), MAX_HEIGHT) }}
    >
      <ReactFlow
        key={isRightToLeft ? 'rtl' : 'ltr'}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_VIEWS}
        onNodesChange={(changes) => {
          const chosen = changes.find((change) => change.type === 'select' && change.selected)
          if (chosen && 'id' in chosen) onOpen(chosen.id)
        }}
        ariaLabelConfig={labels}
        onInit={setGraph}
        onMoveStart={(event) => {
          // Without an event, it was moved by the code.
          isMoved.current ||= event !== null
        }}
        fitViewOptions={FIT}
        minZoom={0.2}
        maxZoom={1.5}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        zoomOnScroll={false}
        preventScrolling={false}
        proOptions={{ hideAttribution: true }}
      >
        <Background color="var(--line)" gap={20} />
        <Controls
          showInteractive={false}
          position={isRightToLeft ? 'bottom-right' : 'bottom-left'}
          className="flex overflow-hidden rounded-lg border bg-raised shadow-raised [&_button]:flex [&_button]:size-8 [&_button]:items-center [&_button]:justify-center [&_button:hover]:bg-hover [&_svg]:size-3.5 [&_svg]:fill-current"
          orientation="horizontal"
        />
      </ReactFlow>
    </section>
  )
}

function NodeView({ id, data, selected }: NodeProps<Node<NodeData>>) {
  const text = useText()
  const { type, state, isRightToLeft } = data
  const Icon = type === null ? Flag : TYPE_ICONS[type]
  const [start, end] = isRightToLeft ? [Position.Right, Position.Left] : [Position.Left, Position.Right]
  return (
    <div
      dir={isRightToLeft ? 'rtl' : 'ltr'}
      style={{ width: WIDTH }}
      className={classes(
        'flex min-h-16 items-center gap-3 rounded-lg border border-line-strong/50 px-3 py-2 text-start shadow-xs',
        // Fainter text would be too faint to read.
        state === 'SKIPPED' ? 'border-dashed bg-sunken' : 'bg-raised',
        type === null ? 'border-dashed' : 'cursor-pointer hover:border-accent',
        state === 'RUNNING' && 'border-accent ring-2 ring-accent/30',
        state === 'FAILED' && 'border-danger',
        selected && 'border-accent',
      )}
    >
      <Handle type="target" position={start} isConnectable={false} className="opacity-0" />
      <Icon className="size-4 shrink-0 text-muted" aria-hidden />
      <div className="min-w-0 grow">
        {type === null ? (
          <span className="text-sm font-medium">{text('workflows.output')}</span>
        ) : (
          <>
            <Code className="font-sans text-sm font-medium">{id}</Code>
            <div className="flex flex-wrap items-center gap-1.5 text-xs text-muted">
              {text(`workflows.type.${type}`)}
              {state && <NodeBadge state={state} />}
            </div>
          </>
        )}
      </div>
      <Handle type="source" position={end} isConnectable={false} className="opacity-0" />
    </div>
  )
}

const NODE_VIEWS = { node: NodeView }
