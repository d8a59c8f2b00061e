/**
 * Organizations to measure on: `repos` repos spread evenly over `groups` groups, and a caller with 20 bindings on three
 * levels. Made once by the engine itself and kept in bench/.data, which git ignores: node bench/data.ts [repos] [groups].
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import { newUid } from '../src/base/uid.ts';
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
import { silent } from '../test/support/server.ts';

/** What a benchmark needs to know about an organization. */
export interface Dataset {
  readonly dataDir: string;
  readonly organization: string;
  /** A team, which holds a hundredth of everything. */
  readonly team: string;
  readonly repos: number;
  readonly groups: number;
  /** Some repos from all over, and the name of each. */
  readonly samples: readonly { readonly uid: string; readonly name: string }[];
  readonly caller: BenchCaller;
}

export interface BenchCaller {
  readonly identity: string;
  readonly key: JWK;
}

export interface DatasetSize {
  readonly repos: number;
  readonly groups: number;
}

/** Where they are kept: some gigabytes. */
export const DATA = process.env.BENCH_DATA ?? join(import.meta.dirname, '.data');

const ISSUER = 'https://issuer.bench';
const AUDIENCE = 'wharfinger-bench';
const BINDINGS = 20;
const SAMPLES = 1_000;
/** Repos in one transaction. */
const BATCH = 4_000;

/** The organization of this size, made now if it is not there yet, or not as this version would make it. */
export async function dataset(size: DatasetSize, print: (line: string) => void = () => {}): Promise<Dataset> {
  const dataDir = join(DATA, `${size.repos}-repos-${size.groups}-groups`);
  const kept = (await keptFacts(dataDir, print)) ?? (await make(dataDir, size, print));
  return { ...kept, dataDir };
}

type Facts = Omit<Dataset, 'dataDir'>;

/** How this version keeps what is in a dataset, beyond what its migrations bring about by themselves. */
export const FORM = fingerprint(
  JSON.stringify(
    [groups, repos, identities, roleBindings].map(({ kind, listOrders, values, nests }) => {
      return [kind, listOrders, Object.keys(values), nests];
    }),
  ),
);

async function keptFacts(dataDir: string, print: (line: string) => void): Promise<Facts | undefined> {
  const file = join(dataDir, 'bench.json');
  if (!existsSync(file)) return undefined;
  const { form, ...facts } = JSON.parse(readFileSync(file, 'utf8')) as Facts & { readonly form?: string };
  try {
    if (form !== FORM) throw new Error('this version keeps other lists');
    // Brings it up to date.
    const log = { info: (_: object, what: string) => print(`${dataDir}: ${what}`), warn: () => {} };
    await (await openStore({ dataDir, log })).close();
    return facts;
  } catch (error) {
    print(`${dataDir} is made again: ${(error as Error).message}`);
    return undefined;
  }
}

async function make(dataDir: string, size: DatasetSize, print: (line: string) => void): Promise<Facts> {
  const started = performance.now();
  const building = `${dataDir}.new`;
  await rm(building, { recursive: true, force: true });
  const facts = await build(building, size);
  writeFileSync(join(building, 'bench.json'), JSON.stringify({ ...facts, form: FORM }));
  await rm(dataDir, { recursive: true, force: true });
  await rename(building, dataDir);
  print(`made ${size.repos} repos in ${size.groups} groups in ${Math.round((performance.now() - started) / 1000)} s`);
  return facts;
}

/** What the caller logs in with; exchange it for a token of the server. */
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

async function build(dataDir: string, size: DatasetSize): Promise<Facts> {
  // The first start makes the organization, its owner and the keys, as for everybody.
  const server = await startServer(loadConfig({ data: dataDir, listen: '127.0.0.1:0' }, {}), { log: silent });
  const organization = server.organization.uid;
  await server.stop();
  const store = await openStore({ dataDir });
  try {
    const places = await makeGroups(store, organization, size.groups);
    const samples = await makeRepos(store, places, size.repos);
    const caller = await makeCaller(store, organization, places);
    return { ...size, organization, team: places[0] ?? organization, samples, caller };
  } finally {
    await store.close();
  }
}

/** Ten groups to a team, teams in the organization: three levels with it. Answers where repos may be: the lowest level. */
async function makeGroups(store: Store, organization: string, count: number): Promise<string[]> {
  const places: string[] = [];
  for (let at = 0; at < count; at += 1_000) {
    await store.write(async (tx) => {
      let team = organization;
      for (let i = at; i < Math.min(at + 1_000, count); i++) {
        const parent: string = i % 10 === 0 ? organization : team;
        const uid = newUid(parent);
        if (i % 10 === 0) team = uid;
        await insert(tx, groups, { message: create(GroupSchema, { name: `group ${i}` }), uid, parent }, Date.now());
        places.push(uid);
      }
    });
  }
  return places;
}

async function makeRepos(store: Store, places: readonly string[], count: number): Promise<Dataset['samples']> {
  const samples: { uid: string; name: string }[] = [];
  const every = Math.max(1, Math.floor(count / SAMPLES));
  // One group after the other: random places would make each transaction touch the whole of the index.
  const perGroup = count / places.length;
  for (let at = 0; at < count; at += BATCH) {
    const drafts = Array.from({ length: Math.min(BATCH, count - at) }, (_, offset) => {
      const i = at + offset;
      const parent = places[Math.floor(i / perGroup)] ?? '';
      // Spread over the alphabet, so that the order of names is not that of creation.
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

/** One binding on the organization, some on teams, the rest on groups of teams. */
async function makeCaller(store: Store, organization: string, places: readonly string[]): Promise<BenchCaller> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const identity = newUid(organization);
  const staticKeys = {
    issuer: ISSUER,
    subject: 'caller',
    audiences: [AUDIENCE],
    issuerKeys: JSON.stringify({ keys: [await exportJWK(publicKey)] }),
  };
  const relationship = { case: 'staticKeys' as const, value: staticKeys };
  const role = (name: string): string => builtinRoles.find((one) => one.name === name)?.uid ?? '';
  await store.write(async (tx) => {
    const now = Date.now();
    const message = create(IdentitySchema, { name: 'caller', relationship });
    await insert(tx, identities, { message, uid: identity, parent: organization }, now);
    for (let i = 0; i < BINDINGS; i++) {
      const parent = i === 0 ? organization : (places[(i * 37) % places.length] ?? organization);
      const roleUid = role(i === 0 ? 'owner' : 'viewer');
      await insert(tx, roleBindings, { message: newBinding(identity, roleUid), uid: newUid(parent), parent }, now);
    }
  });
  return { identity, key: await exportJWK(privateKey) };
}

if (import.meta.main) {
  const [repos = 1_000_000, groups = 1_000] = process.argv.slice(2).map(Number);
  const { dataDir } = await dataset({ repos, groups }, (line) => process.stdout.write(`${line}\n`));
  process.stdout.write(`${dataDir}\n`);
}
