import { deepEqual, doesNotMatch, equal, match, ok, throws } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { run } from '../../tools/release/run.ts';
import { bind, useServer, waitUntilServing } from './container.ts';
import { responseStatus, startImage } from './image.ts';
import { goProgram, runPython } from './programs.ts';
import type { Release } from './release.ts';
import { checkVariables } from './settings.ts';

const KUBERNETES = '1.37.0';
const values = join(import.meta.dirname, 'values');

// biome-ignore lint/suspicious/noExplicitAny: resources of Kubernetes, whose schema the check validates
type Resource = any;

/** The package of the chart passes lint, and gives valid resources for every file in values/. */
export function checkChart({ clone, version, artifact }: Release, scratch: string): void {
  const helm = goProgram('helm.sh/helm/v3/cmd/helm', scratch);
  const template = templateWith(helm, artifact('chart.tgz'));
  mkdirSync(join(scratch, 'resources'));
  for (const file of globSync('*.yaml', { cwd: values }).sort()) {
    const path = join(values, file);
    run(
      helm,
      ['lint', '--strict', '--kube-version', KUBERNETES, '--values', path, join(clone, 'deploy/helm/wharfinger')],
      scratch,
    );
    const resources = template('--values', path);
    validate(resources, join(scratch, 'resources', basename(file)));
    checkPods(resources, version);
  }
  const postgres = template('--values', join(values, 'postgres.yaml'));
  checkPostgres(postgres);
  deepEqual(kindsOf(template('--values', join(values, 'sqlite.yaml'))), [
    'NetworkPolicy',
    'PodDisruptionBudget',
    'Service',
    'Service',
    'ServiceAccount',
    'StatefulSet',
  ]);
  checkRefusals(template);
}

const templateWith =
  (helm: string, chart: string) =>
  (...args: string[]): Resource[] => {
    const output = run(helm, ['template', 'try', chart, '--kube-version', KUBERNETES, ...args], '/');
    return parseAllDocuments(output).flatMap((document) => document.toJS() ?? []);
  };

const kindsOf = (resources: readonly Resource[]): string[] => resources.map(({ kind }) => kind).sort();

/** kubernetes-validate has no schemas of custom resources, so it would only warn about the ServiceMonitor. */
function validate(resources: readonly Resource[], file: string): void {
  const builtIn = resources.filter(({ apiVersion }) => !apiVersion.includes('coreos.com'));
  writeFileSync(file, builtIn.map((resource) => `---\n${JSON.stringify(resource)}\n`).join(''));
  const output = runPython('kubernetes_validate', ['--strict', '--kubernetes-version', '1.37', file]);
  equal(output.match(/passed for resource/g)?.length, builtIn.length, output);
}

/** Every pod is restricted, has probes, sets known variables only, and has more time to stop than a server takes (docs/OPERATIONS.md). */
function checkPods(resources: readonly Resource[], version: string): void {
  const workload = resources.find(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const pod = workload.spec.template.spec;
  const [container] = pod.containers;
  const env = new Map<string, string>(container.env.map(({ name, value }: Resource) => [name, value]));
  checkVariables(env.keys());
  ok(pod.terminationGracePeriodSeconds >= Number.parseInt(env.get('WHARF_DRAIN') ?? '', 10) + 24);
  equal(pod.automountServiceAccountToken, false);
  deepEqual([pod.securityContext.runAsNonRoot, pod.securityContext.seccompProfile.type], [true, 'RuntimeDefault']);
  deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => container[probe].httpGet.path);
  deepEqual(paths, ['/healthz', '/healthz', '/readyz']);
  match(container.image, new RegExp(`:${version}$|@sha256:`));
  const mounted = container.volumeMounts.map(({ name }: Resource) => name);
  const claimed = (workload.spec.volumeClaimTemplates ?? []).map(({ metadata }: Resource) => metadata.name);
  deepEqual(mounted.sort(), [...(pod.volumes ?? []).map(({ name }: Resource) => name), ...claimed].sort());
}

function checkPostgres(resources: readonly Resource[]): void {
  const find = (kind: string, suffix = ''): Resource =>
    resources.find((resource) => resource.kind === kind && resource.metadata.name === `try-wharfinger${suffix}`);
  const { replicas, template } = find('Deployment').spec;
  equal(replicas, 3);
  const env = template.spec.containers[0].env.map(({ name, value }: Resource) => `${name}=${value}`);
  ok(env.includes('WHARF_MAX_CONNECTIONS=1000000'), 'large numbers are not written with an exponent');
  ok(env.includes('WHARF_PUBLIC_URL=https://wharf.example.com'));
  const files = env.filter((line: string) => line.includes('_FILE='));
  deepEqual(files, [
    'WHARF_DATABASE_URL_FILE=/etc/wharfinger/database/url',
    'WHARF_MASTER_KEY_FILE=/etc/wharfinger/master-key/key',
  ]);
  const protocol = 'nginx.ingress.kubernetes.io/backend-protocol';
  equal(find('Ingress').metadata.annotations[protocol], 'HTTP');
  equal(find('Ingress', '-grpc').metadata.annotations[protocol], 'GRPC');
  const monitor = find('ServiceMonitor').spec;
  const service = find('Service', '-metrics');
  for (const [label, value] of Object.entries(monitor.selector.matchLabels))
    equal(service.metadata.labels[label], value);
  equal(monitor.endpoints[0].port, service.spec.ports[0].name);
}

/** Values that would lose data or cannot work stop the installation, and the message says what to set. */
function checkRefusals(template: (...args: string[]) => unknown): void {
  const refused: readonly (readonly [values: string, message: RegExp])[] = [
    ['replicaCount=2', /set database\.existingSecret/],
    ['replicaCount=2,database.existingSecret=d', /set masterKey\.existingSecret/],
    ['replicaCount=2,database.existingSecret=d,masterKey.existingSecret=m', /ReadWriteMany/],
    ['persistence.enabled=false', /SQLite would lose the database/],
    ['persistence.enabled=false,database.existingSecret=d', /lose its master key/],
    ['settings.WHARF_MASTER_KEY=secret', /settings\.WHARF_MASTER_KEY: the chart sets this variable/],
    ['settings.LOG_LEVEL=debug', /LOG_LEVEL/],
    ['replicas=2', /additional properties 'replicas' not allowed/],
  ];
  for (const [set, message] of refused) throws(() => template('--set', set), message, set);
}

/**
 * The server starts in the image with the variables, the volume and the Secret of a pod, and its probes succeed. The
 * volume has the mode that Kubernetes gives an empty one for a pod with an fsGroup.
 */
export async function runPod({ artifact }: Release, layout: string, scratch: string): Promise<void> {
  const helm = goProgram('helm.sh/helm/v3/cmd/helm', scratch);
  const resources = templateWith(helm, artifact('chart.tgz'))(
    '--set',
    'masterKey.existingSecret=m,publicUrl=https://wharf.example.com',
  );
  const { containers, securityContext } = resources.find(({ kind }) => kind === 'StatefulSet').spec.template.spec;
  const [{ env, startupProbe, readinessProbe }] = containers;
  const [volume, secret] = [join(scratch, 'pod-volume'), join(scratch, 'pod-secret')];
  for (const directory of [volume, secret]) mkdirSync(directory);
  writeFileSync(join(secret, 'key'), randomBytes(32).toString('base64'));
  for (const path of [volume, join(secret, 'key')]) chownSync(path, 0, securityContext.fsGroup);
  chmodSync(volume, 0o2777);
  chmodSync(join(secret, 'key'), 0o440);
  const container = startImage(layout, join(scratch, 'pod'), {
    env: env.map(({ name, value }: Resource) => `${name}=${value}`),
    mounts: [bind(volume, '/data', 'rw'), bind(secret, '/etc/wharfinger/master-key', 'ro')],
  });
  try {
    await waitUntilServing(container);
    for (const { httpGet } of [startupProbe, readinessProbe]) equal(responseStatus(container, httpGet.path), '200');
    equal(responseStatus(container, '/metrics', 9090), '200');
    useServer(container, 'wharf');
    equal(await container.stop(), 0, container.output());
    doesNotMatch(container.output(), /"level":"warn"/);
  } finally {
    container.remove();
  }
}

/** The values in README.md are those of values.yaml. */
export function checkChartReadme({ clone }: Release): void {
  const readme = readFileSync(join(clone, 'deploy/helm/wharfinger/README.md'), 'utf8');
  const [document] = parseAllDocuments(readFileSync(join(clone, 'deploy/helm/wharfinger/values.yaml'), 'utf8'));
  for (const name of Object.keys(document?.toJS() as object))
    ok(readme.includes(`\`${name}`), `README.md lacks ${name}`);
}
