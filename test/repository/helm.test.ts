import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { checkConfig } from '../../cli/settings/config-check.ts'
import { ROLES, type Role } from '../../cli/settings/roles.ts'
import { VARIABLES } from '../../cli/settings/variables.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { ROOT } from '../support/processes/containers.ts'

const CHART = join(ROOT, 'helm')
/** What the process takes for itself after the drain, before it gives up (`cli/main.ts`). */
const CLOSE_SECONDS = 8
const KUBERNETES = '1.36.0'

// biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes are checked by its own schemas
type Manifest = any

const read = (path: string) => parse(readFileSync(join(CHART, path), 'utf8'))
const scaled = { enabled: true, minReplicas: 2, maxReplicas: 4, targetCPUUtilizationPercentage: 70 }
const metric = { type: 'Pods', pods: { metric: { name: 'jobs' }, target: { type: 'AverageValue', averageValue: '5' } } }
/** By what an installation wants. */
const INSTALLATIONS: Readonly<Record<string, object>> = {
  'as it comes': {},
  'one pod with everything': { mode: 'embedded' },
  'one pod, on a class of volumes': { mode: 'embedded', embedded: { volume: { storageClassName: 'fast' } } },
  'replicas by load': Object.fromEntries([
    ['roles', Object.fromEntries(ROLES.map((role) => [role, { autoscaling: { ...scaled, metrics: [metric] } }]))],
  ]),
  'metrics for Prometheus': { metrics: { enabled: true, clients: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }] } },
  'one replica of each role': { roles: Object.fromEntries(ROLES.map((role) => [role, { replicas: 1 }])) },
  'a name and TLS': {
    ingress: { enabled: true, className: 'nginx', host: 'knowledge.example.com', tlsSecretName: 'tls', annotations: { a: 'b' } },
    settings: { KIS_PUBLIC_URL: 'https://knowledge.example.com' },
  },
  'vendors, a catalog and clients of one namespace': {
    engines: { secretName: 'vendors', keys: ['OPENAI_API_KEY'] },
    catalog: readFileSync(join(ROOT, 'catalog.yaml'), 'utf8'),
    networkPolicy: { clients: [{ namespaceSelector: { matchLabels: { name: 'web' } } }] },
    secret: { keys: ['KIS_SECRET', 'KIS_MONGODB_URL', 'KIS_ELASTICSEARCH_URL', 'KIS_BOOTSTRAP_API_KEY'] },
  },
}

describe('Helm chart', () => {
  it('has the version of the service, and uses its image', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(read('Chart.yaml')).toMatchObject({ version, appVersion: version })
    expect(parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }).services.billing.image).toBe(
      `${read('values.yaml').image.repository}:${version}`,
    )
  })

  it('sets only settings of the service, and no secret', () => {
    for (const name of Object.keys(read('values.yaml').settings)) expect(Object.keys(VARIABLES.shape)).toContain(name)
    const { properties } = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
    for (const name of properties.secret.properties.keys.items.enum) expect(Object.keys(VARIABLES.shape)).toContain(name)
  })
})

await onEngine(
  'KIS_TEST_HELM',
  'Rendered Helm chart',
  (tools) => {
    describe('Rendered Helm chart', () => {
      let folder: string
      beforeAll(() => {
        folder = mkdtempSync(join(tmpdir(), 'kis-helm-'))
      })
      afterAll(() => rmSync(folder, { recursive: true, force: true }))

      const run = (command: string, args: readonly string[], input = '') =>
        new Promise<{ code: number; output: string }>((resolve) => {
          const child = execFile(command, args, { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
            resolve({ code: error ? Number(error.code ?? 1) : 0, output: stdout + stderr }),
          )
          child.stdin?.end(input)
        })
      async function helm(command: 'lint' | 'template', values: object) {
        const file = join(mkdtempSync(join(folder, 'values-')), 'values.yaml')
        writeFileSync(file, stringify(values))
        const args = command === 'lint' ? ['lint', '--strict', CHART] : ['template', 'x', CHART]
        return run(join(tools, 'helm'), [...args, '--kube-version', KUBERNETES, '--values', file])
      }
      const rendered = async (values: object): Promise<readonly Manifest[]> => {
        const { code, output } = await helm('template', values)
        if (code !== 0) throw new Error(output)
        return parseAllDocuments(output).flatMap((document) => document.toJSON() ?? [])
      }
      const pods = (manifests: readonly Manifest[]) => manifests.filter(({ kind }) => ['Deployment', 'StatefulSet'].includes(kind))
      const roleOf = ({ metadata }: Manifest): string => metadata.labels['app.kubernetes.io/component']

      describe.each(Object.entries(INSTALLATIONS))('%s', (_what, values) => {
        let manifests: readonly Manifest[]
        beforeAll(async () => {
          manifests = await rendered(values)
        })

        it('is valid for Kubernetes, in each field', async () => {
          expect(await helm('lint', values)).toMatchObject({ code: 0 })
          const schemas = join(tools, 'schemas/{{.ResourceKind}}{{.KindSuffix}}.json')
          const yaml = manifests.map((manifest) => stringify(manifest)).join('---\n')
          const { code, output } = await run(join(tools, 'kubeconform'), ['-strict', '-summary', '-schema-location', schemas, '-'], yaml)
          expect({ code, output }).toEqual({
            code: 0,
            output: expect.stringContaining(`Valid: ${manifests.length}, Invalid: 0, Errors: 0, Skipped: 0`),
          })
        })

        it('makes pods read-only except for their volumes, without new privileges, and with the stop time that they need', () => {
          expect(pods(manifests).length).toBeGreaterThan(0)
          for (const { spec } of pods(manifests)) {
            const { spec: pod } = spec.template
            expect(pod).toMatchObject({
              automountServiceAccountToken: false,
              securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
            })
            const [container] = pod.containers
            expect(container.securityContext).toEqual({
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            })
            expect(container.resources).toMatchObject({
              requests: { cpu: expect.anything(), memory: expect.anything() },
              limits: { memory: expect.anything() },
            })
            expect(container.readinessProbe.httpGet.path).toBe('/readyz')
            expect(container.livenessProbe.httpGet.path).toBe('/healthz')
            const set = new Map<string, string>(container.env.map(({ name, value }: Manifest) => [name, value]))
            const stopsAfter = (Number(set.get('KIS_DRAIN_DELAY_MS')) + Number(set.get('KIS_DRAIN_MS'))) / 1_000 + CLOSE_SECONDS
            expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(stopsAfter)
          }
        })

        it('configures each role with valid settings', async () => {
          for (const workload of pods(manifests)) {
            const secrets = mkdtempSync(join(folder, 'secrets-'))
            const env: Record<string, string> = {}
            for (const { name, value } of workload.spec.template.spec.containers[0].env) {
              env[name] = value.replace(/^\/run\/secrets\/\w+|^\/data/, secrets)
              if (name.endsWith('_URL_FILE'))
                writeFileSync(env[name]!, `${/MONGODB/.test(name) ? 'mongodb' : 'https'}://user:password@stores.example/kis`)
              else if (name.endsWith('_FILE')) writeFileSync(env[name]!, `kis_live_${'0'.repeat(36)}`)
            }
            // The key of a first start has a checksum.
            delete env.KIS_BOOTSTRAP_API_KEY_FILE
            const role = roleOf(workload)
            const { code, lines } = await checkConfig(role === 'embedded' ? undefined : (role as Role), env)
            expect([role, code, lines.join()]).toEqual([role, 0, expect.not.stringContaining('ignored')])
          }
        })

        it('names existing Services, Secrets and accounts', () => {
          const names = (kind: string) => manifests.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name)
          for (const { spec } of pods(manifests)) {
            expect(names('ServiceAccount')).toContain(spec.template.spec.serviceAccountName)
            for (const { name, value } of spec.template.spec.containers[0].env)
              if (/^KIS_[A-Z]+_URL$/.test(name) && name !== 'KIS_PUBLIC_URL') expect(names('Service')).toContain(new URL(value).hostname)
          }
          for (const { spec } of manifests.filter(({ kind }) => kind === 'Ingress'))
            for (const { backend } of spec.rules[0].http.paths) expect(names('Service')).toContain(backend.service.name)
          for (const { spec } of manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler'))
            expect(names('Deployment')).toContain(spec.scaleTargetRef.name)
        })
      })

      it('mounts the required secrets of each role as files', async () => {
        const manifests = await rendered(INSTALLATIONS['vendors, a catalog and clients of one namespace']!)
        const provided = Object.fromEntries(
          pods(manifests).map((workload) => {
            const { env } = workload.spec.template.spec.containers[0]
            return [roleOf(workload), env.flatMap(({ name }: Manifest) => (name.endsWith('_FILE') ? [name.replace(/_FILE$/, '')] : []))]
          }),
        )
        expect(provided).toEqual({
          billing: ['KIS_SECRET', 'KIS_MONGODB_URL', 'KIS_BOOTSTRAP_API_KEY'],
          knowledge: ['KIS_SECRET', 'KIS_MONGODB_URL', 'KIS_ELASTICSEARCH_URL'],
          inference: ['KIS_SECRET', 'KIS_MONGODB_URL', 'OPENAI_API_KEY'],
          gateway: ['KIS_SECRET'],
          'rest-adapter': ['KIS_SECRET'],
        })
      })

      it('migrates by a job before an upgrade, with the settings of the roles on MongoDB and without a listener', async () => {
        const [job, ...others] = (await rendered({})).filter(({ kind }) => kind === 'Job')
        expect(others).toEqual([])
        expect(job.metadata.annotations['helm.sh/hook']).toBe('pre-upgrade')
        const { restartPolicy, containers } = job.spec.template.spec
        const [{ args, env, ports, readinessProbe, securityContext }] = containers
        expect([restartPolicy, args, ports, readinessProbe]).toEqual(['Never', ['migrate'], undefined, undefined])
        expect(env.map(({ name }: Manifest) => name)).toEqual(expect.arrayContaining(['KIS_SECRET_FILE', 'KIS_MONGODB_URL_FILE']))
        expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true })
        expect((await rendered({ mode: 'embedded' })).filter(({ kind }) => kind === 'Job')).toEqual([])
      })

      it('limits network access to subgraphs to the service, and to entry points to their clients', async () => {
        const callers = (manifests: readonly Manifest[]) =>
          Object.fromEntries(
            manifests
              .filter(({ kind }) => kind === 'NetworkPolicy')
              .map((policy) => [
                roleOf(policy),
                policy.spec.ingress[0].from?.map(
                  ({ podSelector, namespaceSelector }: Manifest) =>
                    podSelector?.matchLabels['app.kubernetes.io/component'] ?? namespaceSelector.matchLabels.name,
                ) ?? 'all',
              ]),
          )
        const inside = {
          billing: ['gateway', 'knowledge', 'inference'],
          knowledge: ['gateway', 'inference'],
          inference: ['gateway', 'knowledge'],
        }
        expect(callers(await rendered({}))).toEqual({ ...inside, gateway: 'all', 'rest-adapter': 'all' })
        expect(callers(await rendered(INSTALLATIONS['vendors, a catalog and clients of one namespace']!))).toEqual({
          ...inside,
          gateway: ['rest-adapter', 'web'],
          'rest-adapter': ['web'],
        })
      })

      it('allows Prometheus to read each pod if enabled', async () => {
        const manifests = await rendered(INSTALLATIONS['metrics for Prometheus']!)
        const port = read('values.yaml').metrics.port
        for (const workload of pods(manifests))
          expect(workload.spec.template.spec.containers[0].ports).toContainEqual({ name: 'metrics', containerPort: port })
        const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy')
        expect(policies).toHaveLength(ROLES.length)
        for (const { spec } of policies)
          expect(spec.ingress[1]).toEqual({
            ports: [{ protocol: 'TCP', port }],
            from: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
          })
      })

      it('preserves a pod of each role through disruptions, where it has several', async () => {
        const budgets = async (values: object) => (await rendered(values)).filter(({ kind }) => kind === 'PodDisruptionBudget').map(roleOf)
        expect((await budgets({})).sort()).toEqual([...ROLES].sort())
        expect((await budgets(INSTALLATIONS['replicas by load']!)).sort()).toEqual([...ROLES].sort())
        expect(await budgets(INSTALLATIONS['one replica of each role']!)).toEqual([])
        expect(await budgets({ mode: 'embedded' })).toEqual([])
      })

      it.each([
        ['an unknown value', { replicas: 3 }, /replicas/],
        ['a secret among the settings', { settings: { KIS_SECRET: 'x' } }, /KIS_SECRET/],
        [
          'a missing MongoDB',
          { secret: { keys: ['KIS_SECRET', 'KIS_ELASTICSEARCH_URL'] } },
          /mode distributed needs KIS_MONGODB_URL: put it into a Secret/,
        ],
        ['an Ingress without a name', { ingress: { enabled: true } }, /host/],
      ])('refuses %s, with an error', async (_what, values, message) => {
        const { code, output } = await helm('template', values)
        expect([code, output]).toEqual([1, expect.stringMatching(message)])
      })
    })
  },
  { isEverywhere: false },
)
