/**
 * Sends damaged requests of every method to a real server over REST, gRPC and the registry API, and bytes that are no
 * requests, for a fixed time. It fails if the server answers INTERNAL or UNKNOWN, does not answer, logs an error,
 * crashes, or takes more than 100 ms of processor time until it answers a health check.
 *
 *   npm run test:fuzz -- --seed 7 --seconds 30 --database PostgreSQL
 *
 * The same seed generates the same requests in the same order.
 */
import { parseArgs } from 'node:util';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { findDatabase } from '../support/databases.ts';
import { basicAuth, ociClient, pushImage } from '../support/oci-client.ts';
import { spawnServer } from '../support/process.ts';
import { createRandom } from './random.ts';
import { createRequestGenerator, type FuzzRequest } from './requests.ts';
import { createSender, type FuzzAnswer } from './send.ts';
import { watchHealth } from './watch.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    seconds: { type: 'string', default: '90' },
    database: { type: 'string', default: 'SQLite' },
  },
});
const seed = Number(values.seed);
const seconds = Number(values.seconds);

/** Requests in flight. */
const CONCURRENCY = 8;
const MAX_REPORTED = 20;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const location = await findDatabase(values.database).createDataLocation();
const server = await spawnServer(location);
const pid = server.process.pid ?? 0;
print(`fuzz: seed ${seed}, ${seconds} s, ${values.database}, ${server.url}`);

const problems: string[] = [];
function fail(problem: string, request?: FuzzRequest): void {
  problems.push(problem);
  if (problems.length <= MAX_REPORTED) print(`FAIL ${problem}${request ? `\n     ${describe(request)}` : ''}`);
}

function describe(request: FuzzRequest): string {
  if (request.kind === 'raw') return `raw ${JSON.stringify(request.bytes.toString('latin1').slice(0, 500))}`;
  const { 'content-type': type = '', 'content-encoding': encoding = '' } = request.headers;
  const target = request.kind === 'http' ? `${request.verb} ${request.target.slice(0, 500)}` : request.path;
  return `${request.kind} ${target} ${type} ${encoding} ${request.body.subarray(0, 600).toString('base64')}`;
}

let hasCrashed = false;
let isStopping = false;
server.process.on('exit', (code, signal) => {
  hasCrashed = true;
  if (!isStopping) fail(`the server exited with ${code ?? signal}: ${server.log.slice(-5).join('\n')}`);
});

const token = await mintOwnerToken(location.dataDir);
const known = await createKnownValues();
const health = watchHealth(server.url, pid, fail);
const sender = createSender(server.url);
const generate = createRequestGenerator({
  methods: withV2beta1(methodTable(files)),
  token,
  ...known,
});

const random = createRandom(seed);
const counts = new Map<string, number>();
const end = Date.now() + seconds * 1000;
let sent = 0;

async function sendUntilEnd(): Promise<void> {
  while (Date.now() < end && !hasCrashed) {
    const request = generate(random);
    sent++;
    check(request, await sender.send(request));
  }
}

/**
 * INTERNAL of the gRPC library, before a method is called: for a frame that cannot be decompressed and for a timeout
 * header that is no timeout. Other implementations of the protocol answer the same.
 */
const FRAMING = /^(?:Failed to decompress message|Invalid grpc-timeout value)/;

function check(request: FuzzRequest, answer: FuzzAnswer | undefined): void {
  if (answer === undefined) {
    fail('no answer before the deadline', request);
    return;
  }
  const { status, grpcStatus, text } = answer;
  const key = `${request.kind} ${grpcStatus ?? status}`;
  counts.set(key, (counts.get(key) ?? 0) + 1);
  const isInternal = status === 500 || ((grpcStatus === 13 || grpcStatus === 2) && !FRAMING.test(decodeText(text)));
  if (isInternal) fail(`${key}: ${text.slice(0, 300)}`, request);
}

/** gRPC percent-encodes its messages. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

await Promise.all(Array.from({ length: CONCURRENCY }, sendUntilEnd));
await health.stop();
sender.close();
for (const line of server.log) if (/"level":"error"/.test(line)) fail(`log: ${line.slice(0, 600)}`);
isStopping = true;
await server.stop().catch((error) => fail(String(error)));
await location.remove();

const answers = [...counts].sort().map(([key, count]) => `${key}: ${count}`);
print(`fuzz: ${sent} requests (${answers.join(', ')})`);
print(`fuzz: ${health.checks()} health checks, at most ${health.longestMs().toFixed(1)} ms of processor time`);
print(problems.length === 0 ? 'fuzz: no failures' : `fuzz: ${problems.length} failures; repeat with --seed ${seed}`);
process.exit(problems.length === 0 ? 0 : 1);

/** Creates some resources, so that requests have something to refer to. */
async function createKnownValues() {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  async function call<T = { uid: string }>(verb: string, path: string, body?: object): Promise<T> {
    const response = await fetch(server.url + path, {
      ...{ method: verb, headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${verb} ${path}: ${await response.text()}`);
    return (await response.json()) as T;
  }
  const { groups } = await call<{ groups: { uid: string; name: string }[] }>('GET', '/iam/v2/groups');
  const [organization] = groups;
  if (!organization) throw new Error('the server has no organization');
  const { roles } = await call<{ roles: { uid: string }[] }>('GET', '/iam/v2/roles');
  const made: string[] = [];
  for (let at = 0; at < 5; at++) {
    const { uid: group } = await call('POST', `/iam/v2/groups/${organization.uid}`, { name: `team-${at}` });
    const { uid: repo } = await call('POST', `/registry/v2/repos/${group}`, { name: 'app' });
    const { uid: role } = await call('POST', `/iam/v2/roles/${group}`, {
      name: 'role',
      capabilities: ['CAP_IAM_GROUPS_LIST'],
    });
    made.push(group, repo, role);
  }
  const oci = ociClient(server.url, basicAuth(token));
  const repository = `${organization.name}/team-0/app`;
  const { digest } = await pushImage(oci, repository, 'v1');
  oci.close();
  // Not the organization: deleting it would leave nothing to attack.
  return {
    known: {
      uids: [...made, ...roles.slice(0, 3).map(({ uid }) => uid), `${made[0]}/0123456789abcdef`, 'f'.repeat(40)],
      texts: ['app', 'team-1', 'v1', digest, 'https://issuer.example.com', 'owner@example.com', 'CVE-2026-1', 'name'],
    },
    repository,
    digest,
  };
}
