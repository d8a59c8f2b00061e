import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { databases, temporaryStore } from '../../../test/support/databases.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { newUid, parentOf, ROOT } from '../../base/uid.ts';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  type Advisory,
  AdvisorySchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { findAll, findByKey } from '../../resource/read.ts';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { groups } from '../iam/groups.ts';
import { advisories, advisoryKey, type PutResult, putAdvisories, putAdvisory } from './advisories.ts';
import { isAdvisoryId, newAdvisoryId } from './advisory-id.ts';

type Given = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;

for (const database of databases) {
  describe(`putting advisories on ${database.name}`, () => {
    let store: Store;
    const [org, other] = [newUid(ROOT), newUid(ROOT)];
    const [team, crew] = [newUid(org), newUid(org)];

    before(async () => {
      store = await temporaryStore(database);
      await store.write(async (tx) => {
        for (const [uid, name] of Object.entries({ [org]: 'org', [other]: 'other', [team]: 'team', [crew]: 'crew' })) {
          await insert(tx, groups, { message: create(GroupSchema, { name }), uid, parent: parentOf(uid) }, 1);
        }
      });
    });
    after(() => store.close());

    const put = (given: Given, now: number, group = team): Promise<PutResult> =>
      store.write((tx) => putAdvisory(tx, group, create(AdvisorySchema, given), now));

    const putAll = (given: Given[], now: number): Promise<PutResult[]> =>
      store.write((tx) =>
        putAdvisories(
          tx,
          team,
          given.map((one) => create(AdvisorySchema, one)),
          now,
        ),
      );

    async function read(advisoryId: string, group = team): Promise<Advisory> {
      const uid = await findByKey(store.reader, advisories, advisoryKey(group, advisoryId));
      const [stored] = await findAll(store.reader, advisories, uid === undefined ? [] : [uid]);
      return (stored?.message ?? assert.fail(`there is no ${advisoryId}`)) as Advisory;
    }

    const refused = async (work: Promise<unknown>, code: Code, says: RegExp): Promise<void> => {
      await assert.rejects(
        work,
        (error) => error instanceof ApiError && error.code === code && says.test(error.message),
      );
    };

    const openssl = (advisoryId: string): Given => ({
      advisoryId,
      artifactName: 'openssl',
      aliases: ['CVE-2024-1'],
      events: [
        { author: 'ann', createTime: timestampFromMs(500), type: { case: 'fixed', value: { fixedVersion: '3.1-r0' } } },
      ],
    });

    test('creates, changes, or leaves alone', async () => {
      const id = newAdvisoryId();
      assert.equal(await put(openssl(id), 1000), 'created');
      const created = await read(id);
      assert.equal(parentOf(created.uid), team);
      assert.deepEqual([created.createTime, created.updateTime], [timestampFromMs(1000), timestampFromMs(1000)]);

      assert.equal(await put(openssl(id), 2000), 'unchanged');
      assert.deepEqual(await read(id), created);

      const noted = {
        type: { case: 'fixNotPlanned' as const, value: { note: 'no' } },
        createTime: timestampFromMs(400),
      };
      assert.equal(await put({ ...openssl(id), aliases: ['CVE-2024-2'], events: [noted] }, 3000), 'updated');
      const changed = await read(id);
      assert.equal(changed.uid, created.uid);
      assert.deepEqual(changed.aliases, ['CVE-2024-2']);
      assert.deepEqual([changed.createTime, changed.updateTime], [timestampFromMs(1000), timestampFromMs(3000)]);
      assert.deepEqual(
        changed.events.map(({ type }) => type.case),
        ['fixNotPlanned', 'fixed'],
      );
      assert.deepEqual(changed.events[1], created.events[0]);
    });

    test('gives an id to what has none', async () => {
      const results = await putAll([{ artifactName: 'nameless' }, { artifactName: 'nameless' }], 1000);
      assert.deepEqual(results, ['created', 'created']);
      const rows = await store.reader.all<{ key: string }>("SELECT key FROM natural_key WHERE kind = 'advisory'");
      for (const { key } of rows) assert.ok(isAdvisoryId(key.slice(key.indexOf('/') + 1)), key);
    });

    test('takes new, changed and known ones together, and one id twice', async () => {
      const [known, changed, twice] = [newAdvisoryId(), newAdvisoryId(), newAdvisoryId()];
      assert.deepEqual(await putAll([openssl(known), openssl(changed)], 1000), ['created', 'created']);
      const batch = [
        openssl(known),
        { ...openssl(changed), author: 'ann' },
        openssl(twice),
        openssl(twice),
        { ...openssl(twice), author: 'bob' },
      ];
      assert.deepEqual(await putAll(batch, 2000), ['unchanged', 'updated', 'created', 'unchanged', 'updated']);
      assert.equal((await read(twice)).author, 'bob');
      assert.equal((await read(twice)).events.length, 1);
    });

    test('an id belongs to one group of an organization, and another organization has its own', async () => {
      const id = newAdvisoryId();
      assert.equal(await put(openssl(id), 1000), 'created');
      await refused(put(openssl(id), 1000, crew), Code.ALREADY_EXISTS, /another group in this organization/);
      assert.equal(await put(openssl(id), 1000, other), 'created');
      assert.notEqual((await read(id)).uid, (await read(id, other)).uid);
    });

    test('refuses what is wrong, and then stores nothing', async () => {
      const id = newAdvisoryId();
      const wrong: [Given, RegExp][] = [
        [{ advisoryId: 'CGA-1' }, /advisory_id: must be of the form/],
        [{ artifactName: 'two\nlines' }, /artifact_name: must be one line/],
        [{ componentLocation: 'x'.repeat(513) }, /component_location: must be one line of at most 512/],
        [{ aliases: ['fine', ''] }, /aliases\[1\]: must not be empty/],
        [{ aliases: ['two words'] }, /aliases\[0\]: must have no spaces/],
        [{ aliases: Array.from({ length: 101 }, (_, i) => `A-${i}`) }, /aliases: must have at most 100/],
        [{ events: [{ author: 'ann' }] }, /events\[0\]: must say what happened/],
        [{ events: [{ author: 'a\0', type: { case: 'fixed', value: {} } }] }, /events\[0\]\.author: must be one line/],
      ];
      for (const [given, says] of wrong) {
        await refused(putAll([openssl(id), given], 1000), Code.INVALID_ARGUMENT, says);
      }
      assert.equal(await findByKey(store.reader, advisories, advisoryKey(team, id)), undefined);
      await refused(put(openssl(id), 1000, newUid(org)), Code.NOT_FOUND, /group/);
    });
  });
}
