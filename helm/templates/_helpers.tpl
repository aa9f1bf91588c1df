{{- define "kis.name" -}}
{{- if contains "knowledge-and-inference" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-kis" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* Of `list $ role`: labels that select the pods of a role. */ -}}
{{- define "kis.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: knowledge-and-inference-service
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "kis.labels" -}}
{{- $root := index . 0 -}}
{{ include "kis.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{- /* The keys of the Secret that a role gets, as JSON. */ -}}
{{- define "kis.secretKeys" -}}
{{- $root := index . 0 -}}
{{- $wanted := dict
  "billing" (list "KIS_SECRET" "KIS_MONGODB_URL" "KIS_BOOTSTRAP_API_KEY")
  "knowledge" (list "KIS_SECRET" "KIS_MONGODB_URL" "KIS_ELASTICSEARCH_URL" "KIS_ELASTICSEARCH_API_KEY")
  "inference" (list "KIS_SECRET" "KIS_MONGODB_URL")
  "gateway" (list "KIS_SECRET" "KIS_OIDC_CLIENT_SECRET")
  "rest-adapter" (list "KIS_SECRET")
  "migrate" (list "KIS_SECRET" "KIS_MONGODB_URL")
  "embedded" (list "KIS_SECRET" "KIS_BOOTSTRAP_API_KEY" "KIS_OIDC_CLIENT_SECRET") }}
{{- $keys := list }}
{{- if $root.Values.secret.name }}{{ range get $wanted (index . 1) }}{{ if has . $root.Values.secret.keys }}{{ $keys = append $keys . }}{{ end }}{{ end }}{{ end }}
{{- toJson $keys }}
{{- end }}

{{- define "kis.engineKeys" -}}
{{- $values := (index . 0).Values -}}
{{- if and $values.engines.secretName (has (index . 1) (list "inference" "embedded")) }}{{ toJson $values.engines.keys }}{{ else }}[]{{ end }}
{{- end }}

{{- /* Of `list $ role`: the pod of a role, of the whole service, or of `migrate`, which ends by itself. */ -}}
{{- define "kis.pod" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $values := $root.Values -}}
{{- $isEmbedded := eq $role "embedded" -}}
{{- $isJob := eq $role "migrate" -}}
{{- $resources := $isEmbedded | ternary $values.embedded (get $values.roles ($isJob | ternary "billing" $role) | default dict) -}}
{{- $secretKeys := include "kis.secretKeys" . | fromJsonArray -}}
{{- $engineKeys := include "kis.engineKeys" . | fromJsonArray -}}
metadata:
  labels:
    {{- include "kis.labels" . | nindent 4 }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Pods start anew with another catalog.
    checksum/catalog: {{ $values.catalog | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "kis.name" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if $isJob }}
  restartPolicy: Never
  {{- end }}
  # The delay, the drain, 8 s for closing, and some to spare.
  terminationGracePeriodSeconds: {{ add $values.drain.delaySeconds $values.drain.seconds 12 }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if not (or $isEmbedded $isJob) }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "kis.selector" (list $root $role) | nindent 10 }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: kis
      image: "{{ $values.image.repository }}:{{ $values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ $isJob | ternary (list "migrate") ($isEmbedded | ternary (list "start") (list "start" $role)) | toJson }}
      {{- if not $isJob }}
      ports:
        - { name: http, containerPort: 4000 }
        {{- if $values.metrics.enabled }}
        - { name: metrics, containerPort: {{ $values.metrics.port }} }
        {{- end }}
      {{- end }}
      env:
        - { name: KIS_DRAIN_DELAY_MS, value: {{ mul $values.drain.delaySeconds 1000 | quote }} }
        - { name: KIS_DRAIN_MS, value: {{ mul $values.drain.seconds 1000 | quote }} }
        {{- if $isEmbedded }}
        # The service makes this folder itself, for its user alone.
        - { name: KIS_DATA_DIR, value: /data/kis }
        {{- else }}
        {{- range list "billing" "knowledge" "inference" "gateway" }}
        - { name: KIS_{{ upper . }}_URL, value: "http://{{ include "kis.name" $root }}-{{ . }}-replicas:4000" }
        {{- end }}
        {{- end }}
        {{- if $values.metrics.enabled }}
        - { name: KIS_METRICS_HOST, value: 0.0.0.0 }
        - { name: KIS_METRICS_PORT, value: {{ $values.metrics.port | quote }} }
        {{- end }}
        {{- range $name, $value := $values.settings }}
        - { name: {{ $name }}, value: {{ $value | toString | quote }} }
        {{- end }}
        {{- range $secretKeys }}
        - { name: {{ . }}_FILE, value: /run/secrets/kis/{{ . }} }
        {{- end }}
        {{- range $engineKeys }}
        - { name: {{ . }}_FILE, value: /run/secrets/engines/{{ . }} }
        {{- end }}
      {{- if not $isJob }}
      # A role listens at once, and waits for what it needs.
      startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 60 }
      livenessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 }
      # The service itself answers within 4 s, whatever is lost.
      readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2 }
      {{- end }}
      resources: {{ toYaml $resources.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- if $isEmbedded }}
        - { name: data, mountPath: /data }
        {{- end }}
        {{- if $secretKeys }}
        - { name: secret, mountPath: /run/secrets/kis, readOnly: true }
        {{- end }}
        {{- if $engineKeys }}
        - { name: engines, mountPath: /run/secrets/engines, readOnly: true }
        {{- end }}
        {{- if and $values.catalog (not $isJob) }}
        - { name: catalog, mountPath: /app/catalog.yaml, subPath: catalog.yaml, readOnly: true }
        {{- end }}
  volumes:
    - { name: tmp, emptyDir: { sizeLimit: 64Mi } }
    {{- if $secretKeys }}
    - name: secret
      secret:
        secretName: {{ $values.secret.name }}
        defaultMode: 0440
        items:
          {{- range $secretKeys }}
          - { key: {{ . }}, path: {{ . }} }
          {{- end }}
    {{- end }}
    {{- if $engineKeys }}
    - name: engines
      secret:
        secretName: {{ $values.engines.secretName }}
        defaultMode: 0440
        items:
          {{- range $engineKeys }}
          - { key: {{ . }}, path: {{ . }} }
          {{- end }}
    {{- end }}
    {{- if and $values.catalog (not $isJob) }}
    - { name: catalog, configMap: { name: {{ include "kis.name" $root }}-catalog } }
    {{- end }}
{{- end }}
