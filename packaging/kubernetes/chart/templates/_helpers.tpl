{{- define "trainyard.name" -}}
{{- if contains "trainyard" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-trainyard{{ end }}
{{- end }}

{{- define "trainyard.selector" -}}
app.kubernetes.io/name: trainyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trainyard.labels" -}}
{{ include "trainyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "trainyard.image" -}}
{{ required "image.repository: the image of packaging/image/build, for example registry.lan/trainyard" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The name of the server's Service, which needs no search domain. */}}
{{- define "trainyard.address" -}}
{{ include "trainyard.name" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "trainyard.metadata" -}}
name: {{ include "trainyard.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "trainyard.labels" . | nindent 2 }}
{{- end }}

{{- /* Selects the pods of jobs, of any server. */}}
{{- define "trainyard.jobs" -}}
matchExpressions: [{key: trainyard/server, operator: Exists}]
{{- end }}
