import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { METRICS, type MetricDescription, type MetricName } from '../subgraphs/common/telemetry/metrics.ts'
import { onEngine } from '../test/support/engines/engine-url.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const rules: readonly Rule[] = parse(read('prometheus/alerts.yaml')).groups.flatMap((group: { rules: readonly Rule[] }) => group.rules)
const boards = readdirSync(new URL('grafana', import.meta.url)).map((file) => ({ file, board: JSON.parse(read(`grafana/${file}`)) }))

/** Labels that Prometheus itself adds. */
const OF_SCRAPES = ['job', 'instance', 'le']
const NAME = /\b(?:kis|process|nodejs)_\w+/g

/** Says what is wrong with the metrics and the labels of an expression. */
function problems(expr: string): readonly string[] {
  const labels = new Set<string>(OF_SCRAPES)
  const wrong: string[] = []
  for (const [name] of expr.matchAll(NAME)) {
    const described: MetricDescription | undefined =
      METRICS[name.replace(/_(?:bucket|count|sum)$/, '') as MetricName] ?? METRICS[name as MetricName]
    if (!described) wrong.push(`no metric ${name}`)
    for (const label of described?.labels ?? []) labels.add(label)
  }
  const used = [
    ...[...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, selectors]) => [...selectors!.matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => label!)),
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(',').map((label) => label.trim())),
  ]
  return [...wrong, ...used.filter((label) => !labels.has(label)).map((label) => `no label ${label} in ${expr}`)]
}

describe('Alert rules', () => {
  it('use existing metrics and labels', () => {
    expect(rules.length).toBeGreaterThan(10)
    expect(rules.flatMap(({ expr }) => problems(expr))).toEqual([])
  })

  it('have a severity, and a paragraph for the person on call', () => {
    const page = read('../docs/operate/troubleshooting.md')
    for (const { alert, labels, annotations } of rules) {
      expect(['page', 'ticket'], alert).toContain(labels.severity)
      expect(annotations.runbook).toBe(`docs/operate/troubleshooting.md#${alert.toLowerCase()}`)
      expect(page).toContain(`\n### ${alert}\n`)
    }
  })

  it('are each tested by promtool', () => {
    const tests: readonly { alert_rule_test: readonly { alertname: string; exp_alerts: readonly unknown[] }[] }[] = parse(
      read('prometheus/alerts.test.yaml'),
    ).tests
    const fired = tests.flatMap((test) => test.alert_rule_test.filter((each) => each.exp_alerts.length > 0).map((each) => each.alertname))
    expect(rules.map(({ alert }) => alert).filter((alert) => !fired.includes(alert))).toEqual([])
  })
})

await onEngine(
  'KIS_TEST_PROMETHEUS',
  'Alert rules in promtool',
  (folder) => {
    describe('Alert rules in promtool', () => {
      const run = (...args: readonly string[]) =>
        execFileSync(`${folder}/promtool`, args, { cwd: fileURLToPath(new URL('prometheus', import.meta.url)) })
      it('are valid', () => expect(String(run('check', 'rules', 'alerts.yaml'))).toContain('SUCCESS'))
      it('each fire when they should', () => void run('test', 'rules', 'alerts.test.yaml'))
    })
  },
  { isEverywhere: false },
)

describe('Dashboards', () => {
  it('use existing metrics and labels, and legends of existing labels', () => {
    type Panel = { title: string; targets: readonly { expr: string; legendFormat: string }[] }
    expect(boards.map(({ file }) => file)).toEqual(['models.json', 'service.json', 'stores.json'])
    for (const { file, board } of boards) {
      const targets = (board.panels as readonly Panel[]).flatMap((panel) => panel.targets)
      expect(
        targets.flatMap(({ expr }) => problems(expr)),
        file,
      ).toEqual([])
      for (const { expr, legendFormat } of targets) {
        const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!)
        const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]
        if (grouped !== undefined) for (const label of labels) expect(grouped.split(/,\s*/), `${file}: ${expr}`).toContain(label)
      }
    }
  })

  it('show every metric of the service', () => {
    const text = boards.map(({ board }) => JSON.stringify(board)).join() + read('prometheus/alerts.yaml')
    const own = (Object.keys(METRICS) as MetricName[]).filter((name) => name.startsWith('kis_') && name !== 'kis_build_info')
    const perOrganization = ['kis_organization_requests_total', 'kis_organization_tokens_total']
    expect(own.filter((name) => !text.includes(name) && !perOrganization.includes(name))).toEqual([])
  })
})
