{{/* Names. */}}
{{- define "parcae.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "parcae.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "parcae.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "parcae.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels. Give (dict "root" . "component" "operator"). */}}
{{- define "parcae.selector" -}}
app.kubernetes.io/name: {{ include "parcae.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "parcae.labels" -}}
{{ include "parcae.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: parcae
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Of pods: what changes with every chart would restart them with every upgrade. */}}
{{- define "parcae.podLabels" -}}
{{ include "parcae.selector" . }}
app.kubernetes.io/part-of: parcae
{{- end }}

{{/* An image's full name. Give (dict "root" . "image" .Values.operator.image). */}}
{{- define "parcae.image" -}}
{{- $registry := default .root.Values.image.registry .image.registry }}
{{- $tag := default (default .root.Chart.AppVersion .root.Values.image.tag) .image.tag }}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}:{{ $tag }}
{{- end }}

{{/* Names of what protects the board; empty where nothing does. */}}
{{- define "parcae.etcdTls" -}}
{{- if and .Values.etcd.enabled .Values.etcd.security.enabled -}}
{{- default (printf "%s-etcd-tls" (include "parcae.fullname" .)) .Values.etcd.security.tlsSecret -}}
{{- end -}}
{{- end }}

{{- define "parcae.boardAccess" -}}
{{- if not .Values.etcd.enabled -}}
{{ .Values.board.accessSecret }}
{{- else if .Values.etcd.security.enabled -}}
{{- default (printf "%s-board" (include "parcae.fullname" .)) .Values.etcd.security.rootSecret -}}
{{- end -}}
{{- end }}

{{/* Where the board is. */}}
{{- define "parcae.board" -}}
{{- if .Values.etcd.enabled -}}
{{ include "parcae.fullname" . }}-etcd.{{ .Release.Namespace }}.svc:2379
{{- else -}}
{{ required "board.endpoints: with etcd.enabled=false, say where your etcd is, as in [etcd.infra:2379]" (join "," .Values.board.endpoints) }}
{{- end }}
{{- end }}

{{/* What the pod specs of all programs have in common. */}}
{{- define "parcae.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.priorityClassName }}
priorityClassName: {{ .Values.priorityClassName }}
{{- else if .Values.priorityClasses.create }}
priorityClassName: {{ include "parcae.fullname" . }}-control
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if eq .Values.avoidSpot "required" }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: {{- include "parcae.notSpot" . | nindent 8 }}
{{- else if eq .Values.avoidSpot "preferred" }}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions: {{- include "parcae.notSpot" . | nindent 8 }}
{{- end }}
{{- end }}

{{/* What a spot node is labelled with, by whom. */}}
{{- define "parcae.notSpot" -}}
- {key: cloud.google.com/gke-spot, operator: NotIn, values: ["true"]}
- {key: cloud.google.com/gke-preemptible, operator: NotIn, values: ["true"]}
- {key: cloud.google.com/gke-provisioning, operator: NotIn, values: [spot, preemptible]}
- {key: eks.amazonaws.com/capacityType, operator: NotIn, values: [SPOT, spot]}
- {key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}
- {key: kubernetes.azure.com/scalesetpriority, operator: NotIn, values: [spot]}
- {key: cluster.x-k8s.io/interruptible, operator: DoesNotExist}
- {key: node.kubernetes.io/lifecycle, operator: NotIn, values: [spot]}
{{- end }}

{{- define "parcae.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Annotations of a program's pods: those that values name, and where its metrics are for a
Prometheus that finds pods by annotations. Values win. Give root, annotations and port. */}}
{{- define "parcae.podAnnotations" -}}
{{- $found := dict }}
{{- if and .root.Values.monitoring.enabled .root.Values.monitoring.scrapeAnnotations }}
{{- $found = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port) "prometheus.io/path" "/metrics" }}
{{- end }}
{{- with merge (dict) .annotations $found }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Not empty where the Prometheus operator's kinds can be created. */}}
{{- define "parcae.monitors" -}}
{{- if .Values.monitoring.enabled }}
{{- if or .Values.monitoring.force (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") }}yes{{ end }}
{{- end }}
{{- end }}

{{/* Rules of NetworkPolicies. Whoever may ask for metrics on a port: give root and port. */}}
{{- define "parcae.fromMetrics" -}}
- ports: [{protocol: TCP, port: {{ .port }}}]
  {{- with .root.Values.networkPolicy.metricsFrom }}
  from: {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "parcae.toNames" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- end }}

{{/* What the operator puts into each job's policy, beside the job's own pods. */}}
{{- define "parcae.agentRules" -}}
ingress:
{{ include "parcae.fromMetrics" (dict "root" . "port" 8082) }}
{{- with .Values.networkPolicy.agents.ingress }}
{{ toYaml . }}
{{- end }}
egress:
{{ include "parcae.toNames" . }}
# Notices of preemption; the second is GKE's with Workload Identity.
- to: [{ipBlock: {cidr: 169.254.169.254/32}}, {ipBlock: {cidr: "fd00:ec2::254/128"}}]
  ports: [{protocol: TCP, port: 80}]
- to: [{ipBlock: {cidr: 169.254.169.252/32}}]
  ports: [{protocol: TCP, port: 988}]
{{- if .Values.etcd.enabled }}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
    podSelector:
      matchLabels: {{- include "parcae.selector" (dict "root" . "component" "etcd") | nindent 8 }}
  ports: [{protocol: TCP, port: 2379}]
{{- else }}
{{- range default .Values.board.endpoints .Values.board.agentEndpoints }}
- ports: [{protocol: TCP, port: {{ regexFind "[0-9]+$" . | default "2379" }}}]
{{- end }}
{{- end }}
{{- with .Values.networkPolicy.agents.egress }}
{{ toYaml . }}
{{- end }}
{{- end }}
