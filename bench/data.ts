/**
 * Datasets for benchmarks: organizations with `repos` repos spread evenly over `groups` groups, and a caller with 20
 * role bindings on three levels. They are created once and stored in bench/.data, which git ignores.
 * To create one: node bench/data.ts [repos] [groups].
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import { newUid, type ParentUid, parseUid, ROOT, type Uid } from '../src/base/uid.ts';
import { loadConfig } from '../src/config.ts';
import { GroupSchema } from '../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RepoSchema } from '../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { groups } from '../src/domains/iam/groups/groups.ts';
import { identities } from '../src/domains/iam/identities/identities.ts';
import { builtinRoles } from '../src/domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../src/domains/iam/roles/role-bindings.ts';
import { repos } from '../src/domains/registry/repos/repos.ts';
import { startServer } from '../src/main.ts';
import { fingerprint } from '../src/resource/list/page-token.ts';
import { insert, insertAll } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { silentLog } from '../test/support/server.ts';

/** An organization to measure on. */
export interface Dataset {
  readonly dataDir: string;
  readonly organization: Uid;
  /** A group with ten groups in it. */
  readonly team: Uid;
  readonly repos: number;
  readonly groups: number;
  /** Repos from all groups. */
  readonly samples: readonly { readonly uid: Uid; readonly name: string }[];
  readonly caller: BenchCaller;
}

/** The identity that makes the calls. */
export interface BenchCaller {
  readonly identity: Uid;
  /** The private key that signs its login tokens. */
  readonly key: JWK;
}

export interface DatasetSize {
  readonly repos: number;
  readonly groups: number;
}

/** The directory of all datasets, which take some gigabytes. */
export const DATA_DIRECTORY = process.env.BENCH_DATA ?? join(import.meta.dirname, '.data');

const ISSUER = 'https://issuer.bench';
const AUDIENCE = 'wharfinger-bench';
const BINDINGS = 20;
const SAMPLES = 1_000;
/** The number of repos in one transaction. */
const BATCH = 4_000;

/** Returns the dataset of this size. Creates it if it is missing, or if this version of the code cannot use it. */
export async function ensureDataset(size: DatasetSize, print: (line: string) => void = () => {}): Promise<Dataset> {
  const dataDir = join(DATA_DIRECTORY, `${size.repos}-repos-${size.groups}-groups`);
  const description = (await readExisting(dataDir, print)) ?? (await createDataset(dataDir, size, print));
  return { ...description, dataDir };
}

type DatasetDescription = Omit<Dataset, 'dataDir'>;

/**
 * Identifies the rows that this version writes to the listing index. Migrations do not rewrite them. The keys are written
 * out, so that a renamed property of the code does not invalidate the datasets.
 */
export const LIST_LAYOUT_FINGERPRINT = fingerprint(
  JSON.stringify(
    [groups, repos, identities, roleBindings].map(({ kind, listOrders, values, nests }) => {
      const orders = { whole: listOrders.whole, facet: listOrders.facet, part: listOrders.partition };
      return [kind, orders, Object.keys(values), nests];
    }),
  ),
);

/** Returns undefined if the dataset is missing, or cannot be used by this version. */
async function readExisting(dataDir: string, print: (line: string) => void): Promise<DatasetDescription | undefined> {
  const file = join(dataDir, 'bench.json');
  if (!existsSync(file)) return undefined;
  const { form, ...description } = JSON.parse(readFileSync(file, 'utf8')) as DatasetDescription & { form?: string };
  try {
    if (form !== LIST_LAYOUT_FINGERPRINT) throw new Error('this version has another listing index');
    // Opening the store migrates it.
    const log = { info: (_: object, message: string) => print(`${dataDir}: ${message}`), warn: () => {} };
    await (await openStore({ dataDir, log })).close();
    return description;
  } catch (error) {
    print(`${dataDir} is created again: ${(error as Error).message}`);
    return undefined;
  }
}

async function createDataset(
  dataDir: string,
  size: DatasetSize,
  print: (line: string) => void,
): Promise<DatasetDescription> {
  const started = performance.now();
  const building = `${dataDir}.new`;
  await rm(building, { recursive: true, force: true });
  const description = await fill(building, size);
  writeFileSync(join(building, 'bench.json'), JSON.stringify({ ...description, form: LIST_LAYOUT_FINGERPRINT }));
  await rm(dataDir, { recursive: true, force: true });
  await rename(building, dataDir);
  print(
    `created ${size.repos} repos in ${size.groups} groups in ${Math.round((performance.now() - started) / 1000)} s`,
  );
  return description;
}

/** Signs a token of the caller's issuer. The server exchanges it for an access token. */
export async function loginToken({ key }: BenchCaller): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT()
    .setProtectedHeader({ alg: 'EdDSA' })
    .setIssuer(ISSUER)
    .setSubject('caller')
    .setAudience(AUDIENCE)
    .setIssuedAt(now)
    .setExpirationTime(now + 3600)
    .sign(await importJWK(key, 'EdDSA'));
}

async function fill(dataDir: string, size: DatasetSize): Promise<DatasetDescription> {
  // The first start of a server creates the organization, its owner and the keys.
  const server = await startServer(loadConfig({ data: dataDir, listen: '127.0.0.1:0' }, {}), { log: silentLog });
  const organization = parseUid('organization', server.organization.uid);
  await server.stop();
  const store = await openStore({ dataDir });
  try {
    const groupUids = await createGroups(store, organization, size.groups);
    const samples = await createRepos(store, groupUids, size.repos);
    const caller = await createCaller(store, organization, groupUids);
    return { ...size, organization, team: groupUids[0] ?? organization, samples, caller };
  } finally {
    await store.close();
  }
}

/** Creates groups on two levels: every tenth is a child of the organization and the parent of the next nine. */
async function createGroups(store: Store, organization: Uid, count: number): Promise<Uid[]> {
  const uids: Uid[] = [];
  for (let at = 0; at < count; at += 1_000) {
    await store.write(async (tx) => {
      let team = organization;
      for (let i = at; i < Math.min(at + 1_000, count); i++) {
        const parent: Uid = i % 10 === 0 ? organization : team;
        const uid = newUid(parent);
        if (i % 10 === 0) team = uid;
        await insert(tx, groups, { message: create(GroupSchema, { name: `group ${i}` }), uid, parent }, Date.now());
        uids.push(uid);
      }
    });
  }
  return uids;
}

async function createRepos(store: Store, groupUids: readonly Uid[], count: number): Promise<Dataset['samples']> {
  const samples: { uid: Uid; name: string }[] = [];
  const every = Math.max(1, Math.floor(count / SAMPLES));
  // One group after the other: in random groups, each transaction would change pages of the whole index.
  const perGroup = count / groupUids.length;
  for (let at = 0; at < count; at += BATCH) {
    const drafts = Array.from({ length: Math.min(BATCH, count - at) }, (_, offset) => {
      const i = at + offset;
      const parent: ParentUid = groupUids[Math.floor(i / perGroup)] ?? ROOT;
      // Hashed, so that the order of names differs from the order of creation.
      const name = `${((i * 2_654_435_761) % 2 ** 32).toString(36)}-${i}`;
      const uid = newUid(parent);
      if (i % every === 0) samples.push({ uid, name });
      const description = `Everything that ${name} needs to run, rebuilt every night.`;
      return { message: create(RepoSchema, { name, description }), uid, parent };
    });
    await store.write((tx) => insertAll(tx, repos, drafts, Date.now()));
  }
  return samples;
}

/** Creates the caller with one role binding at the organization and the others at groups of both levels. */
async function createCaller(store: Store, organization: Uid, groupUids: readonly Uid[]): Promise<BenchCaller> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const identity = newUid(organization);
  const staticKeys = {
    issuer: ISSUER,
    subject: 'caller',
    audiences: [AUDIENCE],
    issuerKeys: JSON.stringify({ keys: [await exportJWK(publicKey)] }),
  };
  const relationship = { case: 'staticKeys' as const, value: staticKeys };
  const roleUidOf = (name: string): string => builtinRoles.find((role) => role.name === name)?.uid ?? '';
  await store.write(async (tx) => {
    const now = Date.now();
    const message = create(IdentitySchema, { name: 'caller', relationship });
    await insert(tx, identities, { message, uid: identity, parent: organization }, now);
    for (let i = 0; i < BINDINGS; i++) {
      const parent = i === 0 ? organization : (groupUids[(i * 37) % groupUids.length] ?? organization);
      const roleUid = roleUidOf(i === 0 ? 'owner' : 'viewer');
      await insert(tx, roleBindings, { message: newBinding(identity, roleUid), uid: newUid(parent), parent }, now);
    }
  });
  return { identity, key: await exportJWK(privateKey) };
}

if (import.meta.main) {
  const [repos = 1_000_000, groups = 1_000] = process.argv.slice(2).map(Number);
  const { dataDir } = await ensureDataset({ repos, groups }, (line) => process.stdout.write(`${line}\n`));
  process.stdout.write(`${dataDir}\n`);
}
