// How long a permission decision takes: for a caller with 20 bindings, among 10,000 groups, 50,000 identities and
// 100,000 bindings. Prints microseconds when warm (grants are known) and milliseconds when cold (they are read).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createAccess } from '../src/access/access.ts';
import { createCaller } from '../src/access/caller.ts';
import { newUid, ROOT } from '../src/base/uid.ts';
import { GroupSchema } from '../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { files, methodTable } from '../src/contract/methods.ts';
import { builtinRoles } from '../src/domains/iam/builtin-roles.ts';
import { groups } from '../src/domains/iam/groups.ts';
import { identities } from '../src/domains/iam/identities.ts';
import { newBinding, roleBindings } from '../src/domains/iam/role-bindings.ts';
import { insert } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';

const scale = Number(process.argv[2] ?? 1);
const GROUPS = 10_000 * scale;
const IDENTITIES = 50_000 * scale;
const BINDINGS = 100_000 * scale;
const BATCH = 1000;
const now = Date.now();

const dataDir = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
const store = await openStore({ dataDir, databaseUrl: process.env.WHARF_DATABASE_URL });
const print = (line: string) => process.stdout.write(`${line}\n`);

/** Makes `count` of something, a thousand per transaction. */
async function fill(
  count: number,
  make: (i: number, tx: Parameters<Parameters<typeof store.write>[0]>[0]) => Promise<unknown>,
) {
  for (let made = 0; made < count; made += BATCH) {
    await store.write(async (tx) => {
      for (let i = made; i < Math.min(made + BATCH, count); i++) await make(i, tx);
    });
  }
}

const places: string[] = [];
const people: string[] = [];
const role = (i: number) => builtinRoles[i % builtinRoles.length]?.uid ?? '';
const started = performance.now();
await fill(GROUPS, async (i, tx) => {
  // A hundred organizations of a hundred groups, three levels deep.
  const parent = i % 100 === 0 ? ROOT : (places[i - (i % 100) + Math.floor((i % 100) / 10)] ?? ROOT);
  const uid = newUid(parent);
  await insert(tx, groups, { message: create(GroupSchema, { name: `group ${i}` }), uid, parent }, now);
  places.push(uid);
});
await fill(IDENTITIES, async (i, tx) => {
  const uid = newUid(ROOT);
  await insert(tx, identities, { message: create(IdentitySchema, { name: `identity ${i}` }), uid, parent: ROOT }, now);
  people.push(uid);
});
const caller = people[0] ?? '';
await fill(BINDINGS, async (i, tx) => {
  const parent = places[(i * 7919) % places.length] ?? '';
  const identity = i < 20 ? caller : (people[1 + ((i * 104_729) % (people.length - 1))] ?? '');
  await insert(tx, roleBindings, { message: newBinding(identity, role(i)), uid: newUid(parent), parent }, now);
});
print(
  `${GROUPS} groups, ${IDENTITIES} identities, ${BINDINGS} bindings in ${Math.round((performance.now() - started) / 1000)} s`,
);

const checks = methodTable(files).filter(({ access }) => access === 'scoped');
const decide = async (access: ReturnType<typeof createAccess>, i: number) => {
  const { capabilities } = checks[i % checks.length] ?? { capabilities: [] };
  return createCaller(caller, undefined, await access.grants(caller)).can(
    capabilities,
    places[(i * 31) % places.length] ?? '',
  );
};

const ROUNDS = 20_000;
const warm = createAccess(store.reader);
for (let i = 0; i < ROUNDS; i++) await decide(warm, i);
const from = performance.now();
for (let i = 0; i < ROUNDS; i++) await decide(warm, i);
const warmUs = ((performance.now() - from) / ROUNDS) * 1000;

const cold: number[] = [];
for (let i = 0; i < 50; i++) {
  const at = performance.now();
  await decide(createAccess(store.reader), i);
  cold.push(performance.now() - at);
}
cold.sort((a, b) => a - b);
print(
  `permission decision, 20 bindings: warm ${warmUs.toFixed(1)} us (bar 20), cold ${cold[25]?.toFixed(2)} ms median, ${cold.at(-1)?.toFixed(2)} ms worst (bar 5)`,
);

await store.close();
await rm(dataDir, { recursive: true, force: true });
if (warmUs > 20 || (cold[25] ?? 0) > 5) process.exitCode = 1;
