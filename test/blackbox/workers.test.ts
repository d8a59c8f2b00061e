import assert from 'node:assert/strict';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { builtinRoleUid, callerWithoutRole } from '../support/callers.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';

const WORKERS = 2;
/** More than workers, so that each worker gets some. Connections are distributed to the workers in turn. */
const CONNECTIONS = 4;
const ROUNDS = 10;

interface HttpResponse {
  readonly status: number;
  readonly text: string;
}

/** A single keep-alive connection, which stays with its worker. */
function connection(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = async (verb: string, path: string, token: string, body?: object): Promise<HttpResponse> => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request(`${url}${path}`, { agent, method: verb, headers }, resolve)
      .on('error', reject)
      .end(body && JSON.stringify(body));
    const response = await promise;
    return { status: response.statusCode ?? 0, text: await text(response) };
  };
  return { send, close: () => agent.destroy() };
}

const workersIn = ({ log }: ServerProcess): number[] =>
  log.filter((line) => line.includes('"worker serves"')).map((line) => JSON.parse(line).pid as number);

for (const database of databases) {
  describe(`several workers on ${database.name}`, () => {
    let dataLocation: DataLocation;
    let server: ServerProcess;
    let token: string;
    let org: string;
    let connections: ReturnType<typeof connection>[];
    before(async () => {
      dataLocation = await database.createDataLocation();
      server = await spawnServer(dataLocation, {
        WHARF_WORKERS: String(WORKERS),
        WHARF_OPERATIONS_LISTEN: '127.0.0.1:0',
      });
      await pollUntil(
        async () => workersIn(server).length,
        (count) => count === WORKERS,
      );
      token = await mintOwnerToken(dataLocation.dataDir);
      org = (await readOwner(dataLocation.dataDir))?.organization ?? assert.fail();
      connections = Array.from({ length: CONNECTIONS }, () => connection(server.url));
    });
    after(async () => {
      for (const one of connections) one.close();
      await server.kill();
      await dataLocation.remove();
    });

    const onAll = async (verb: string, path: string, callerToken: string): Promise<number[]> => {
      const statuses: number[] = [];
      for (const { send } of connections) statuses.push((await send(verb, path, callerToken)).status);
      return statuses;
    };

    test('a revocation at one worker takes effect with the next request to any worker', async () => {
      const caller = await callerWithoutRole({ url: server.url, token } as never, org);
      const callerToken = await caller.token();
      const [owner] = connections;
      assert.ok(owner);
      const roleBinding = { identityUid: caller.uid, roleUid: builtinRoleUid('viewer') };
      const readOrg = () => onAll('GET', `/iam/v2/groups/${org}`, callerToken);
      for (let round = 0; round < ROUNDS; round++) {
        assert.deepEqual(await readOrg(), Array(CONNECTIONS).fill(403));
        const made: HttpResponse = await owner.send('POST', `/iam/v2/roleBindings/${org}`, token, roleBinding);
        assert.equal(made.status, 200, made.text);
        assert.deepEqual(await readOrg(), Array(CONNECTIONS).fill(200));
        const deleted: HttpResponse = await owner.send(
          'DELETE',
          `/iam/v2/roleBindings/${JSON.parse(made.text).uid}`,
          token,
        );
        assert.equal(deleted.status, 200, deleted.text);
      }
      assert.deepEqual(await readOrg(), Array(CONNECTIONS).fill(403));
    });

    test('a change at one worker is read from any worker, by get and list', async () => {
      const [first, second] = connections;
      assert.ok(first && second);
      const { text } = await first.send('POST', `/iam/v2/groups/${org}`, token, { name: 'before' });
      const { uid } = JSON.parse(text) as { uid: string };
      const page = `/iam/v2/groups?uidp.children_of=${org}`;
      const namesAt = async ({ send }: typeof first): Promise<string[]> => {
        const [alone, listed] = [await send('GET', `/iam/v2/groups/${uid}`, token), await send('GET', page, token)];
        return [JSON.parse(alone.text), ...JSON.parse(listed.text).groups].map(({ name }) => name as string);
      };
      for (let round = 0; round < ROUNDS; round++) {
        // Every worker has the group in its cache when one of them changes it.
        for (const one of connections) await namesAt(one);
        const name = `round ${round}`;
        const changed: HttpResponse = await (round % 2 ? first : second).send('PATCH', `/iam/v2/groups/${uid}`, token, {
          name,
        });
        assert.equal(changed.status, 200, changed.text);
        for (const one of connections) assert.deepEqual(await namesAt(one), [name, name]);
      }
      await second.send('DELETE', `/iam/v2/groups/${uid}`, token);
      for (const { send } of connections) {
        assert.equal((await send('GET', `/iam/v2/groups/${uid}`, token)).status, 404);
        assert.deepEqual(JSON.parse((await send('GET', page, token)).text).groups, []);
      }
    });

    test('workers write concurrently, and each sees all writes', async () => {
      const made = await Promise.all(
        connections.map(async ({ send }, at) => {
          for (let i = 0; i < ROUNDS; i++) {
            const { status, text } = await send('POST', `/iam/v2/groups/${org}`, token, { name: `side ${at} ${i}` });
            assert.equal(status, 200, text);
          }
          return ROUNDS;
        }),
      );
      const expected = made.reduce((sum, count) => sum + count, 0);
      for (const { send } of connections) {
        const { text } = await send('GET', `/iam/v2/groups?uidp.children_of=${org}&page_size=1`, token);
        assert.equal(JSON.parse(text).totalCount, String(expected));
      }
    });

    test('every worker returns the metrics of all workers on the operations port', async () => {
      const metric =
        'wharf_requests_total{method="chainguard.platform.ping.v2.PingService/Ping",wire="rest",code="OK"}';
      const lineOf = (metrics: string): string | undefined => metrics.split('\n').find((one) => one.startsWith(metric));
      const operationsUrl = /"operationsUrl":"([^"]+)"/.exec(server.log.join('\n'))?.[1] ?? assert.fail();
      const scrapers = connections.map(() => connection(operationsUrl));
      try {
        for (const [at, { send }] of scrapers.entries()) {
          await onAll('GET', '/ping/v2/ping', token);
          // The metrics are collected once a second.
          const { text } = await pollUntil(
            () => send('GET', '/metrics', token),
            (response) => lineOf(response.text) === `${metric} ${(at + 1) * CONNECTIONS}`,
          );
          assert.match(text, /^wharf_build_info\{.*\} 1$/m);
          // Gauges of what all workers share are not multiplied by the workers.
          assert.match(text, /^wharf_organizations 1$/m);
          assert.match(text, /^wharf_ready 1$/m);
          assert.match(text, /^process_start_time_seconds \d{10}$/m);
        }
      } finally {
        for (const scraper of scrapers) scraper.close();
      }
      const [first] = connections;
      assert.equal((await first?.send('GET', '/metrics', token))?.status, 404);
    });

    test('a killed worker is replaced while the others serve', async () => {
      const [victim = 0] = workersIn(server);
      process.kill(victim, 'SIGKILL');
      // Its connections break, and new ones are served.
      const [survivor] = await Promise.all(
        [connection(server.url), connection(server.url)].map(async (fresh) => {
          connections.push(fresh);
          return pollUntil(
            () => fresh.send('GET', `/iam/v2/groups/${org}`, token).catch(() => ({ status: 0 })),
            ({ status }) => status === 200,
          );
        }),
      );
      assert.equal(survivor?.status, 200);
      const pids = await pollUntil(
        async () => workersIn(server),
        (found) => found.length === WORKERS + 1,
      );
      assert.notEqual(pids.at(-1), victim);
    });

    test('SIGTERM stops all workers', async () => {
      assert.equal(await server.stop(), 0);
      for (const pid of workersIn(server)) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    });
  });
}
