{{- define "wharfinger.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "wharfinger.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "wharfinger.labels" -}}
{{ include "wharfinger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "wharfinger.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "wharfinger.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "wharfinger.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "wharfinger.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{- .Values.publicUrl -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s" (ternary "https" "http" (or (not (empty .Values.ingress.http.tlsSecret)) (not (empty .Values.tls.existingSecret)))) .Values.ingress.http.host -}}
{{- end -}}
{{- end -}}

{{/* Whether several servers can write the volume at the same time. */}}
{{- define "wharfinger.sharedVolume" -}}
{{- if and .Values.persistence.enabled (has "ReadWriteMany" .Values.persistence.accessModes) -}}true{{- end -}}
{{- end -}}

{{/* Refuses values that would lose data or could not work. */}}
{{- define "wharfinger.check" -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- if not .Values.database.existingSecret -}}
{{- fail "replicaCount is greater than 1, but SQLite allows one server only: set database.existingSecret to a Secret with a URL of PostgreSQL" -}}
{{- end -}}
{{- if not .Values.masterKey.existingSecret -}}
{{- fail "replicaCount is greater than 1, and all servers need the same master key: set masterKey.existingSecret" -}}
{{- end -}}
{{- if not (include "wharfinger.sharedVolume" .) -}}
{{- fail "replicaCount is greater than 1, and all servers need the blobs: set persistence.accessModes to [ReadWriteMany], with a storageClass that supports it" -}}
{{- end -}}
{{- end -}}
{{- if not .Values.persistence.enabled -}}
{{- if not .Values.database.existingSecret -}}
{{- fail "persistence.enabled is false, so SQLite would lose the database with the pod: enable it, or set database.existingSecret" -}}
{{- end -}}
{{- if not .Values.masterKey.existingSecret -}}
{{- fail "persistence.enabled is false, so the pod would lose its master key: enable it, or set masterKey.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- $own := list "WHARF_LISTEN" "WHARF_DATA" "WHARF_DRAIN" "WHARF_OPERATIONS_LISTEN" "WHARF_PUBLIC_URL" "WHARF_TLS_CERT" "WHARF_TLS_KEY" "WHARF_MASTER_KEY" "WHARF_MASTER_KEY_FILE" "WHARF_DATABASE_URL" "WHARF_DATABASE_URL_FILE" -}}
{{- range $name, $value := .Values.settings -}}
{{- if has $name $own -}}
{{- fail (printf "settings.%s: the chart sets this variable from another value. README.md says from which" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "wharfinger.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .root.Values.tls.existingSecret }}
  scheme: HTTPS
  {{- end }}
{{ toYaml .values }}
{{- end -}}

{{/* The pod, the same for StatefulSet and Deployment. */}}
{{- define "wharfinger.pod" -}}
metadata:
  labels:
    {{- include "wharfinger.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "wharfinger.serviceAccountName" . }}
  automountServiceAccountToken: false
  # Variables for every Service of the namespace could be taken for settings: a Service named wharf gives WHARF_PORT.
  enableServiceLinks: false
  # Longer than a server takes to stop: the drain, then 10 seconds for requests, 3 for deliveries and 10 to close.
  terminationGracePeriodSeconds: {{ add (int .Values.drainSeconds) 30 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # Leaves the modes of the files alone, which the server keeps private.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: wharfinger
      image: {{ include "wharfinger.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      env:
        - name: WHARF_LISTEN
          value: ":8080"
        - name: WHARF_DATA
          # The server creates the directory with mode 0700: an emptyDir itself has mode 0777, which it refuses.
          value: /data/wharfinger
        - name: WHARF_DRAIN
          value: {{ printf "%ds" (int .Values.drainSeconds) | quote }}
        {{- with include "wharfinger.publicUrl" . }}
        - name: WHARF_PUBLIC_URL
          value: {{ . | quote }}
        {{- end }}
        {{- if .Values.metrics.enabled }}
        - name: WHARF_OPERATIONS_LISTEN
          value: {{ printf ":%d" (int .Values.metrics.port) | quote }}
        {{- end }}
        {{- if .Values.database.existingSecret }}
        - name: WHARF_DATABASE_URL_FILE
          value: /etc/wharfinger/database/url
        {{- end }}
        {{- if .Values.masterKey.existingSecret }}
        - name: WHARF_MASTER_KEY_FILE
          value: /etc/wharfinger/master-key/key
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: WHARF_TLS_CERT
          value: /etc/wharfinger/tls/tls.crt
        - name: WHARF_TLS_KEY
          value: /etc/wharfinger/tls/tls.key
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        - name: {{ $name }}
          value: {{ ternary ($value | int64) $value (kindIs "float64" $value) | toString | quote }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 8080
        {{- if .Values.metrics.enabled }}
        - name: metrics
          containerPort: {{ .Values.metrics.port }}
        {{- end }}
      startupProbe:
        {{- include "wharfinger.probe" (dict "root" . "path" "/healthz" "values" .Values.startupProbe) | nindent 8 }}
      livenessProbe:
        {{- include "wharfinger.probe" (dict "root" . "path" "/healthz" "values" .Values.livenessProbe) | nindent 8 }}
      readinessProbe:
        {{- include "wharfinger.probe" (dict "root" . "path" "/readyz" "values" .Values.readinessProbe) | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /data
        {{- if .Values.database.existingSecret }}
        - name: database
          mountPath: /etc/wharfinger/database
          readOnly: true
        {{- end }}
        {{- if .Values.masterKey.existingSecret }}
        - name: master-key
          mountPath: /etc/wharfinger/master-key
          readOnly: true
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: tls
          mountPath: /etc/wharfinger/tls
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- with include "wharfinger.volumes" . }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if gt (int .Values.replicaCount) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "wharfinger.selector" . | nindent 10 }}
  {{- end }}
{{- end -}}

{{- define "wharfinger.volumes" -}}
{{- if not .Values.persistence.enabled }}
- name: data
  emptyDir: {}
{{- else if or .Values.database.existingSecret .Values.persistence.existingClaim }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (include "wharfinger.name" .) }}
{{- end }}
{{- if .Values.database.existingSecret }}
- name: database
  secret:
    secretName: {{ .Values.database.existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .Values.database.key }}
        path: url
{{- end }}
{{- if .Values.masterKey.existingSecret }}
- name: master-key
  secret:
    secretName: {{ .Values.masterKey.existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .Values.masterKey.key }}
        path: key
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .Values.tls.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "wharfinger.claim" -}}
accessModes:
  {{- toYaml .Values.persistence.accessModes | nindent 2 }}
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end -}}
