/**
 * Starts the release before this one on a new data directory, creates data of every kind, and changes to this version,
 * back, and forward again. Run by run.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startFlags } from '../../src/cli/v8-flags.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import {
  createSampleData,
  jsonApi,
  pullImages,
  readEverything,
  renewLogin,
  type SampleData,
} from '../support/sample-data.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { prepareEarlierRelease } from './earlier-release.ts';

const earlier = prepareEarlierRelease();
if ('problem' in earlier) throw new Error(earlier.problem);
const { version: earlierVersion, program: earlierProgram } = earlier;

type Everything = Map<string, unknown>;

for (const database of databases) {
  describe(`from ${earlierVersion} to this version and back on ${database.name}`, { timeout: 170_000 }, () => {
    let location: DataLocation;
    let sink: TestSink;
    let server: ServerProcess;
    let token: string;
    let listen = '127.0.0.1:0';
    const samples: SampleData[] = [];
    let refreshToken: string;
    let everything: Everything;
    let images: Map<string, Buffer>;
    /** The collections that the earlier release has, such as `/iam/v2/groups`. */
    let knownCollections: ReadonlySet<string>;

    before(async () => {
      location = await database.createDataLocation();
      sink = await startSink();
    });
    after(async () => {
      await server?.kill();
      await sink?.close();
      await location?.remove();
    });

    // A short timeout, because a server waits three times as long before it takes over deliveries of another.
    const env = () => ({ WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_DELIVERY_TIMEOUT: '1s', WHARF_LISTEN: listen });
    async function startOn(program?: string): Promise<void> {
      server = await spawnServer(location, env(), startFlags, program);
      // The same address each time: it is part of the tokens.
      listen = new URL(server.url).host;
    }

    /** Creates data of every kind, and waits until an event about it was delivered. */
    async function write(label: string): Promise<void> {
      const sample = await createSampleData(server.url, token, label, sink.url);
      samples.push(sample);
      refreshToken ??= sample.refreshToken;
      await pollUntil(async () => sink.received.some(({ attributes }) => attributes.subject === sample.group), Boolean);
    }

    async function readAll(): Promise<void> {
      everything = await readEverything(server.url, token);
      images = await pullImages(
        server.url,
        token,
        samples.flatMap((sample) => sample.images),
      );
    }

    /** Checks that the server has what the one before had, and accepts the tokens that it issued. */
    async function assertServesAll(): Promise<void> {
      const found = await readEverything(server.url, token);
      const shared = (path: string): boolean => knownCollections.has(collectionOf(path)) && !CHANGED.has(path);
      assert.deepEqual([...found.keys()].filter(shared).sort(), [...everything.keys()].filter(shared).sort());
      for (const [path, body] of found) {
        if (everything.has(path) && !CHANGED.has(path)) assertSameFields(body, everything.get(path), path);
      }
      const pulled = await pullImages(
        server.url,
        token,
        samples.flatMap((sample) => sample.images),
      );
      assert.deepEqual(pulled, images);
      for (const sample of samples) {
        const owned = jsonApi(server.url, sample.accessToken);
        assert.equal((await owned.call('GET', `/iam/v2/groups/${sample.group}`)).uid, sample.group);
        const page = `/iam/v2/groups?page_size=1&order_by=name&page_token=${encodeURIComponent(sample.pageToken)}`;
        assert.equal(((await jsonApi(server.url, token).call('GET', page)).groups as unknown[]).length, 1);
        const taken = await jsonApi(server.url, token).send('POST', '/iam/v2/groups/', { name: sample.formerName });
        assert.equal(taken.status, 200, 'the operator who deleted an organization can use its name again');
        await jsonApi(server.url, token).call('DELETE', `/iam/v2/groups/${(taken.body as { uid: string }).uid}`);
      }
      ({ refreshToken } = await renewLogin(server.url, refreshToken));
    }

    async function assertIndexIsConsistent(): Promise<void> {
      const store = await openStore(location);
      await assertConsistent(store.reader).finally(() => store.close());
    }

    test(`${earlierVersion} creates data of every kind`, async () => {
      await startOn(earlierProgram);
      token = await mintOwnerToken(location.dataDir);
      await write('first');
      await readAll();
      knownCollections = new Set([...everything.keys()].map(collectionOf));
      assert.ok(knownCollections.size > 25 && images.size > 5);
      await server.stop();
    });

    test('this version serves all of it, and writes', async () => {
      await startOn();
      await assertServesAll();
      await write('second');
      await readAll();
      await assertIndexIsConsistent();
      await server.stop();
    });

    test(`${earlierVersion} starts again, serves all of it, and writes`, async () => {
      await startOn(earlierProgram);
      await assertServesAll();
      await write('third');
      await readAll();
      await server.stop();
    });

    test('this version takes over again', async () => {
      await startOn();
      await assertServesAll();
      await write('fourth');
      await assertIndexIsConsistent();
      assert.equal(await server.stop(), 0);
      const errors = server.log.filter((line) => /"level":"error"/.test(line));
      assert.deepEqual(errors, []);
    });
  });
}

/** Lists that have other content in the later version: it lists every tag, and not only deprecated ones. */
const CHANGED = new Set(['/registry/v1/eoltags']);

/** `/iam/v2/groups` for `/iam/v2/groups/<uid>`, and `/libraries/v2/artifacts/versions` for those of an artifact. */
function collectionOf(path: string): string {
  const parts = path.replace(/:.*/, '').split('/');
  const [last = ''] = parts.slice(4).slice(-1);
  return [...parts.slice(0, 4), ...(/^[a-z_]+$/.test(last) ? [last] : [])].join('/');
}

/** Fails if a field that both have is different. A later version may have more fields. */
function assertSameFields(actual: unknown, expected: unknown, path: string): void {
  if (Array.isArray(actual) && Array.isArray(expected)) {
    assert.equal(actual.length, expected.length, path);
    for (const [at, item] of actual.entries()) assertSameFields(item, expected[at], `${path}[${at}]`);
  } else if (isObject(actual) && isObject(expected)) {
    // A version updates the built-in roles that have other capabilities in it.
    const changes = actual.name === 'operator' && 'capabilities' in actual ? ['capabilities', 'updateTime'] : [];
    for (const key of Object.keys(actual)) {
      if (key in expected && !changes.includes(key)) assertSameFields(actual[key], expected[key], `${path}.${key}`);
    }
  } else assert.deepEqual(actual, expected, path);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
