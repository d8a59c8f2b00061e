/**
 * Creates data of every kind through the API of a running server, and reads all of it back. Used by tests that move
 * data: to another version of the server, or to another database. Only HTTP and JSON are used, as the server may be an
 * earlier release.
 */
import { generateKeyPairSync } from 'node:crypto';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { builtinRoleUid } from './callers.ts';
import { basicAuth, buildImage, buildIndex, type OciClient, ociClient, pushImage } from './oci-client.ts';
import { grypeReport, trivyReport } from './scans.ts';

type Json = Record<string, unknown>;

export interface JsonApi {
  call(verb: string, path: string, body?: unknown): Promise<Json>;
  /** Returns the status and the parsed body, whatever the status is. */
  send(verb: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: unknown }>;
}

/** A client that fails on every response that is not successful. */
export function jsonApi(url: string, token: string): JsonApi {
  async function send(verb: string, path: string, body?: unknown) {
    const response = await fetch(url + path, {
      method: verb,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as unknown) };
  }
  return {
    send,
    async call(verb, path, body) {
      const response = await send(verb, path, body);
      if (response.status < 300) return response.body as Json;
      throw new Error(`${verb} ${path} returned ${response.status}: ${JSON.stringify(response.body)}`);
    },
  };
}

export interface SampleImage {
  /** The name in the registry, such as `my-org/team/app`. */
  readonly repository: string;
  /** A tag or a digest. */
  readonly reference: string;
}

export interface SampleData {
  readonly organization: string;
  readonly group: string;
  readonly images: readonly SampleImage[];
  /** The name of an organization that was deleted. Nobody else can take it. */
  readonly formerName: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  /** The second page of groups, one per page. */
  readonly pageToken: string;
}

const VIEWER = builtinRoleUid('viewer');
const TIME = '2026-08-01T00:00:00Z';

/** `label` distinguishes the data of several calls. `sink` is the URL of a sink. */
export async function createSampleData(url: string, token: string, label: string, sink: string): Promise<SampleData> {
  const api = jsonApi(url, token);
  const create = async (path: string, body: object): Promise<string> =>
    String((await api.call('POST', path, body)).uid);
  const { groups } = (await api.call('GET', '/iam/v2/groups')) as { groups: { uid: string; name: string }[] };
  const organization = groups.find(({ uid }) => !uid.includes('/')) as { uid: string; name: string };

  await create(`/events/v2/subscriptions/${organization.uid}`, { sink });
  const group = await create(`/iam/v2/groups/${organization.uid}`, {
    name: `team-${label}`,
    description: 'ÄÖ "quoted" \\ 🚢',
  });
  const inner = await create(`/iam/v2/groups/${group}`, { name: 'inner' });
  for (let at = 0; at < 12; at++) await create(`/iam/v2/groups/${inner}`, { name: `leaf ${at}` });
  await api.call('PATCH', `/iam/v2/groups/${inner}`, { description: 'changed' });
  const removed = await create(`/iam/v2/groups/${group}`, { name: 'removed' });
  await api.call('DELETE', `/iam/v2/groups/${removed}`);
  const formerName = `former-${label}`;
  await api.call('DELETE', `/iam/v2/groups/${await create('/iam/v2/groups/', { name: formerName })}`);

  const role = await create(`/iam/v2/roles/${group}`, { name: 'own role', capabilities: ['CAP_IAM_GROUPS_LIST'] });
  const { publicKey } = generateKeyPairSync('ed25519');
  const keys = JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] });
  const machine = await create(`/iam/v2/identities/${group}`, {
    name: 'machine',
    claimMatch: { issuer: 'https://token.actions.example.com', subject: `repo:acme/${label}` },
  });
  await create(`/iam/v2/identities/${group}`, {
    name: 'pattern',
    claimMatch: { issuerPattern: 'https://[a-z0-9-]+\\.example\\.com', subjectPattern: `repo:${label}:.*` },
  });
  await create(`/iam/v2/identities/${group}`, {
    name: 'with key',
    staticKeys: {
      ...{ issuer: `https://keys.example.com/${label}`, subject: 'key', issuerKeys: keys },
      expirationTime: new Date(Date.now() + 86_400_000).toISOString(),
    },
  });
  for (const roleUid of [role, VIEWER]) {
    await create(`/iam/v2/roleBindings/${group}`, { identityUid: machine, roleUid });
  }
  const provider = await create(`/iam/v2/identityProviders/${organization.uid}`, {
    name: `provider-${label}`,
    defaultRole: VIEWER,
    oidc: { issuer: `https://login.example.com/${label}`, clientId: 'wharf', clientSecret: 'a secret' },
  });
  await create(`/iam/v2/externalGroupRoleMappings/${provider}`, { externalGroupId: 'ops', roleUid: VIEWER });
  await create(`/iam/v2/groupInvites/${group}`, { roleUid: VIEWER, ttl: '86400s' });
  await create(`/iam/v2/accountAssociations/${group}`, { name: 'clouds', amazon: { account: '123456789012' } });
  await api.call('POST', `/iam/v2/terms/${organization.uid}`, { documentIds: ['sfdpa.v1'] });

  const repo = await create(`/registry/v2/repos/${group}`, { name: 'app' });
  await api.call('PATCH', `/registry/v2/repos/${repo}/readme`, { content: '# App' });
  const images = await pushImages(
    ociClient(url, basicAuth(token)),
    `${organization.name}/team-${label}/app`,
    repo,
    api,
  );
  await api.call('POST', `/wharfinger/v1/imports/${group}/advisories`, {
    advisories: [
      { artifactName: 'zlib', aliases: ['CVE-2026-1'], events: [{ fixed: { fixedVersion: '1.2' }, createTime: TIME }] },
      {
        artifactName: 'curl',
        aliases: ['CVE-2026-2'],
        events: [{ pendingUpstreamFix: { note: 'soon' }, createTime: TIME }],
      },
    ],
  });
  await api.call('POST', `/wharfinger/v1/imports/${group}/vulnerabilities`, {
    vulnerabilities: [{ id: `CVE-${label}-1`, summary: 'Bad', references: [{ type: 1, url: 'https://example.test' }] }],
  });
  for (const [ecosystem, name] of [
    ['java', `org.example:${label}`],
    ['python', `lib-${label}`],
  ] as const) {
    const versions = ['1.0', '1.1'].map((version) => ({
      ...{ name, version, description: 'a library' },
      files: [{ name: `${name}-${version}.bin`, sizeBytes: '100', createTime: TIME }],
    }));
    await api.call('POST', `/wharfinger/v1/imports/${group}/libraries/${ecosystem}`, { versions });
  }
  return {
    ...{ organization: organization.uid, group, images, formerName },
    ...(await logIn(url, api)),
    pageToken: String((await api.call('GET', '/iam/v2/groups?page_size=1&order_by=name')).nextPageToken),
  };
}

async function pushImages(oci: OciClient, repository: string, repo: string, api: JsonApi): Promise<SampleImage[]> {
  const first = await pushImage(oci, repository, 'v1', `layer of ${repo}`);
  const moved = await pushImage(oci, repository, 'latest', 'old');
  await pushImage(oci, repository, 'latest', 'new');
  const { manifest, blobs } = buildImage('arm64', Buffer.alloc(300_000, repo));
  for (const blob of blobs) await oci.pushBlob(repository, blob);
  await oci.pushManifest(repository, manifest.digest, manifest);
  const index = buildIndex({ amd64: first, arm64: manifest });
  await oci.pushManifest(repository, 'multi', index);
  oci.close();
  for (const write of [grypeReport, trivyReport]) {
    const report = write({ findings: [{ id: 'CVE-2026-1', severity: 'High', fixed: '2' }], time: TIME });
    const content = Buffer.from(JSON.stringify(report)).toString('base64');
    await api.call('POST', `/wharfinger/v1/imports/${repo}/reports`, { reports: [{ content, digest: first.digest }] });
  }
  return ['v1', 'latest', 'multi', moved.digest, manifest.digest].map((reference) => ({ repository, reference }));
}

/** Exchanges the token of the owner, which creates a session. */
async function logIn(url: string, api: JsonApi): Promise<Pick<SampleData, 'accessToken' | 'refreshToken'>> {
  const exchanged = await api.call('POST', `/sts/exchange?aud=${encodeURIComponent(url)}`);
  return {
    accessToken: String(exchanged.token),
    refreshToken: String(exchanged.refresh_token ?? exchanged.refreshToken),
  };
}

/** Renews a login. The refresh token can be used once, so the new one is returned too. */
export async function renewLogin(url: string, refreshToken: string): Promise<{ token: string; refreshToken: string }> {
  const path = `/sts/exchange_refresh_token?aud=${encodeURIComponent(url)}`;
  const renewed = (await jsonApi(url, refreshToken).call('POST', path)) as Record<string, { token: string }>;
  const refresh = renewed.refresh_token ?? renewed.refreshToken;
  return { token: renewed.token?.token ?? '', refreshToken: refresh?.token ?? '' };
}

/** The bytes of all parts of the images: manifests and blobs, by digest. */
export async function pullImages(
  url: string,
  token: string,
  images: readonly SampleImage[],
): Promise<Map<string, Buffer>> {
  const oci = ociClient(url, basicAuth(token));
  const found = new Map<string, Buffer>();
  async function pull(path: string, name: string): Promise<Buffer> {
    const { status, body } = await oci.send('GET', path, { headers: { accept: '*/*' } });
    if (status !== 200) throw new Error(`GET ${path} returned ${status}: ${body}`);
    found.set(name, body);
    return body;
  }
  async function pullManifest(repository: string, reference: string): Promise<void> {
    const bytes = await pull(`/v2/${repository}/manifests/${reference}`, `${repository} ${reference}`);
    const { config, layers = [], manifests = [] } = JSON.parse(bytes.toString());
    for (const { digest } of [...(config ? [config] : []), ...layers]) {
      await pull(`/v2/${repository}/blobs/${digest}`, `${repository} ${digest}`);
    }
    for (const { digest } of manifests) await pullManifest(repository, digest);
  }
  for (const { repository, reference } of images) await pullManifest(repository, reference);
  oci.close();
  return found;
}

/** Responses that change with every request or with time. */
const VOLATILE = /ping|^\/sts\/|^\/auth\/|\/sessions|\/serverIdentities|:lookup|checkEligibility|\/deliveries|\/sinks/;

/**
 * Reads everything that the API can show: all pages of all lists of all versions, and each resource of these lists on
 * its own. The routes come from the contract. Responses that are no success are left out: some lists need parameters.
 */
export async function readEverything(url: string, token: string): Promise<Map<string, unknown>> {
  const api = jsonApi(url, token);
  const found = new Map<string, unknown>();
  const routes = methodTable(files).flatMap((method) => method.routes.filter(({ verb }) => verb === 'GET'));
  const templates = [...new Set(routes.map(({ template }) => template))].filter((path) => !VOLATILE.test(path)).sort();
  const uids = new Map<string, string[]>();
  for (const path of templates.filter((template) => !template.includes('{'))) {
    const items: unknown[] = [];
    let pageToken = '';
    do {
      const { status, body } = await api.send('GET', `${path}?page_size=5&page_token=${pageToken}`);
      if (status !== 200) break;
      const { nextPageToken = '', ...page } = body as Json;
      items.push(page);
      pageToken = encodeURIComponent(String(nextPageToken));
    } while (pageToken !== '');
    if (items.length === 0) {
      // Lists of v1 have no pages.
      const { status, body } = await api.send('GET', path);
      if (status === 200) items.push(body);
    }
    if (items.length > 0) found.set(path, items);
    uids.set(path, uidsIn(items));
  }
  for (const template of templates) {
    const [, collection = '', rest = ''] = /^([^{]*)\/\{[\w.]+=\*\*?\}([^{]*)$/.exec(template) ?? [];
    for (const uid of uids.get(collection) ?? []) {
      const path = `${collection}/${uid}${rest}`;
      const { status, body } = await api.send('GET', path);
      if (status === 200) found.set(path, body);
    }
  }
  return found;
}

/** The uids of the resources of a list, not those that the resources refer to. */
function uidsIn(pages: readonly unknown[]): string[] {
  const items = pages
    .flatMap((page) => Object.values(page as Json))
    .flatMap((list) => (Array.isArray(list) ? list : []));
  return items.flatMap((item: Json) => (item.uid ?? item.id) as string).filter((uid) => typeof uid === 'string');
}
