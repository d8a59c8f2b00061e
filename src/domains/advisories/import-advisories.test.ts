import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { assertConsistent } from '../../../test/support/consistency.ts';
import { databases, temporaryStore } from '../../../test/support/databases.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { newUid, parentOf, ROOT } from '../../base/uid.ts';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  type Advisory,
  AdvisorySchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Outcome } from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import { findAll, findByKey } from '../../resource/read.ts';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { groups } from '../iam/groups/groups.ts';
import { importRecords } from '../imports/import-records.ts';
import { advisories, advisoryKey } from './advisories.ts';
import { isAdvisoryId, newAdvisoryId } from './advisory-id.ts';
import { advisoryImporter } from './import-advisories.ts';

type AdvisoryInit = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;

for (const database of databases) {
  describe(`importing advisories on ${database.name}`, () => {
    let store: Store;
    const [org, other] = [newUid(ROOT), newUid(ROOT)];
    const [team, crew] = [newUid(org), newUid(org)];

    before(async () => {
      store = await temporaryStore(database);
      await store.write(async (tx) => {
        for (const [name, uid] of Object.entries({ org, other, team, crew })) {
          await insert(tx, groups, { message: create(GroupSchema, { name }), uid, parent: parentOf(uid) }, 1);
        }
      });
    });
    after(() => store.close());

    const importAll = (inits: AdvisoryInit[], now: number, group = team): Promise<Outcome> =>
      store.write((db) => {
        const records = inits.map((init) => create(AdvisorySchema, init));
        return importRecords({ db, now }, advisoryImporter, group, records);
      });

    /** The numbers of created, updated, unchanged and refused records. */
    const counts = ({ created, updated, unchanged, refusals }: Outcome) => [
      ...[created, updated, unchanged],
      refusals.length,
    ];

    async function read(advisoryId: string, group = team): Promise<Advisory> {
      const uid = await findByKey(store.reader, advisories, advisoryKey(group, advisoryId));
      const [stored] = await findAll(store.reader, advisories, uid === undefined ? [] : [uid]);
      return stored?.message ?? assert.fail(`there is no ${advisoryId}`);
    }

    const openssl = (advisoryId: string): AdvisoryInit => ({
      advisoryId,
      artifactName: 'openssl',
      aliases: ['CVE-2024-1'],
      events: [
        { author: 'ann', createTime: timestampFromMs(500), type: { case: 'fixed', value: { fixedVersion: '3.1-r0' } } },
      ],
    });

    test('creates and updates advisories, and skips those that do not change', async () => {
      const id = newAdvisoryId();
      assert.deepEqual(counts(await importAll([openssl(id)], 1000)), [1, 0, 0, 0]);
      const created = await read(id);
      assert.equal(parentOf(created.uid), team);
      assert.deepEqual([created.createTime, created.updateTime], [timestampFromMs(1000), timestampFromMs(1000)]);

      assert.deepEqual(counts(await importAll([openssl(id)], 2000)), [0, 0, 1, 0]);
      assert.deepEqual(await read(id), created);

      const noted = {
        type: { case: 'fixNotPlanned' as const, value: { note: 'no' } },
        createTime: timestampFromMs(400),
      };
      const edited = { ...openssl(id), aliases: ['CVE-2024-2'], events: [noted, ...(openssl(id).events ?? [])] };
      assert.deepEqual(counts(await importAll([edited], 3000)), [0, 1, 0, 0]);
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

    test('a record replaces aliases and events; its other empty fields keep the stored values', async () => {
      const id = newAdvisoryId();
      const full: AdvisoryInit = {
        ...openssl(id),
        legacyAdvisoryId: 'OLD-1',
        author: 'ann',
        artifactType: 'apk',
        componentName: 'libcrypto',
        severities: [{ type: 2, score: 'CVSS:3.1/AV:N' }],
        deleteTime: timestampFromMs(700),
      };
      await importAll([full], 1000);
      const before = await read(id);
      assert.deepEqual(counts(await importAll([{ advisoryId: id, artifactName: 'openssl' }], 2000)), [0, 1, 0, 0]);
      const { aliases: _a, events: _e, updateTime: _t, ...kept } = before;
      assert.deepEqual(await read(id), { ...kept, aliases: [], events: [], updateTime: timestampFromMs(2000) });
    });

    test('a record without an id updates the same advisory when it is imported again', async () => {
      const nameless: AdvisoryInit = { artifactName: 'nameless', aliases: ['CVE-1-1', 'CVE-1-2'] };
      const again: AdvisoryInit = { artifactName: 'nameless', aliases: ['CVE-1-2', 'CVE-1-1'] };
      assert.deepEqual(counts(await importAll([nameless, again], 1000)), [1, 1, 0, 0]);
      assert.deepEqual(counts(await importAll([again], 2000)), [0, 0, 1, 0]);
      assert.deepEqual(counts(await importAll([{ ...nameless, componentName: 'other' }], 2000)), [1, 0, 0, 0]);
      const legacy: AdvisoryInit = { artifactName: 'nameless', legacyAdvisoryId: 'OSV-1', aliases: ['CVE-1-3'] };
      assert.deepEqual(counts(await importAll([legacy, { ...legacy, aliases: ['CVE-1-4'] }], 2000)), [1, 1, 0, 0]);
      const rows = await store.reader.all<{ key: string }>("SELECT key FROM natural_key WHERE kind = 'advisory'");
      for (const { key } of rows) assert.ok(isAdvisoryId(key.slice(key.indexOf('/') + 1)), key);
    });

    test('a batch can have new, changed and unchanged records, and repeat an id', async () => {
      const [known, changed, twice] = [newAdvisoryId(), newAdvisoryId(), newAdvisoryId()];
      assert.deepEqual(counts(await importAll([openssl(known), openssl(changed)], 1000)), [2, 0, 0, 0]);
      const batch = [
        openssl(known),
        { ...openssl(changed), author: 'ann' },
        { ...openssl(changed), author: 'eve' },
        openssl(twice),
        openssl(twice),
        { ...openssl(twice), author: 'bob' },
      ];
      assert.deepEqual(counts(await importAll(batch, 2000)), [1, 3, 2, 0]);
      assert.equal((await read(changed)).author, 'eve');
      assert.equal((await read(twice)).author, 'bob');
      assert.equal((await read(twice)).events.length, 1);
      await assertConsistent(store.reader);
    });

    test('concurrent imports of the same batch store it once', async () => {
      const batch = Array.from({ length: 30 }, () => openssl(newAdvisoryId()));
      const outcomes = await Promise.all([
        importAll(batch, 1000),
        importAll(batch, 1000),
        importAll(batch.toReversed(), 1000),
      ]);
      assert.deepEqual(outcomes.map(counts).sort().reverse(), [
        [30, 0, 0, 0],
        [0, 0, 30, 0],
        [0, 0, 30, 0],
      ]);
      const edited = batch.map((one) => ({ ...one, author: 'eve' }));
      const changed = await Promise.all([
        importAll(edited, 2000),
        importAll(edited.toReversed(), 2000),
        importAll(batch, 2000),
      ]);
      for (const outcome of changed) assert.equal(outcome.refusals.length, 0);
      await assertConsistent(store.reader);
    });

    test('an id is unique in an organization; another organization can use it too', async () => {
      const [id, free] = [newAdvisoryId(), newAdvisoryId()];
      assert.deepEqual(counts(await importAll([openssl(id)], 1000)), [1, 0, 0, 0]);
      const outcome = await importAll([openssl(free), openssl(id)], 1000, crew);
      assert.deepEqual(counts(outcome), [1, 0, 0, 1]);
      const { $typeName: _, ...refusal } = outcome.refusals[0] ?? assert.fail();
      const reason = 'belongs to another group of this organization';
      assert.deepEqual(refusal, { index: 1, id, field: 'advisory_id', reason });
      assert.deepEqual(counts(await importAll([openssl(id)], 1000, other)), [1, 0, 0, 0]);
      assert.notEqual((await read(id)).uid, (await read(id, other)).uid);
    });

    test('refuses each wrong record, and only those', async () => {
      const event = (init: object) => ({ ...init, type: { case: 'fixed' as const, value: {} } });
      const wrong: [AdvisoryInit, string, RegExp][] = [
        [{ advisoryId: 'CGA-1' }, 'advisory_id', /must be of the form/],
        [{ artifactName: '' }, 'artifact_name', /name of the affected artifact/],
        [{ artifactName: 'two\nlines' }, 'artifact_name', /must be one line/],
        [{ componentLocation: 'x'.repeat(513) }, 'component_location', /must be one line of at most 512/],
        [{ aliases: ['fine', ''] }, 'aliases[1]', /must not be empty/],
        [{ aliases: ['two words'] }, 'aliases[0]', /must have no spaces/],
        [{ aliases: Array.from({ length: 101 }, (_, i) => `A-${i}`) }, 'aliases', /must have at most 100/],
        [{ events: Array.from({ length: 201 }, event) }, 'events', /must have at most 200/],
        [{ events: [{ author: 'ann' }] }, 'events[0]', /must have a type/],
        [{ events: [event({ author: 'a\0' })] }, 'events[0].author', /must be one line/],
        [{ events: [event({ reviewState: 9 })] }, 'events[0].review_state', /must be a known state/],
        [{ events: [event({ createTime: { seconds: 10n ** 12n } })] }, 'events[0].create_time', /years 1 to 9999/],
        [{ severities: [{ type: 7 as never, score: 'x' }] }, 'severities[0].type', /must be a known type/],
        [{ deleteTime: { seconds: -(10n ** 12n), nanos: 0 } as never }, 'delete_time', /years 1 to 9999/],
      ];
      const id = newAdvisoryId();
      const records = wrong.map(([init]) => ({ artifactName: 'zlib', ...init }));
      const outcome = await importAll([openssl(id), ...records], 1000);
      assert.deepEqual(counts(outcome), [1, 0, 0, wrong.length]);
      for (const [i, { index, field, reason }] of outcome.refusals.entries()) {
        assert.deepEqual([index, field], [i + 1, wrong[i]?.[1]]);
        assert.match(reason, wrong[i]?.[2] ?? assert.fail());
      }
      assert.equal((await read(id)).artifactName, 'openssl');
    });

    test('refuses a batch that is too large, and a group that does not exist', async () => {
      const fails = (work: Promise<unknown>, code: Code, says: RegExp) =>
        assert.rejects(work, (error) => error instanceof ApiError && error.code === code && says.test(error.message));
      const many = Array.from({ length: 1001 }, () => ({ artifactName: 'zlib' }));
      await fails(importAll(many, 1000), Code.INVALID_ARGUMENT, /advisories: must have at most 1000 records/);
      await fails(importAll([openssl(newAdvisoryId())], 1000, newUid(org)), Code.NOT_FOUND, /group/);
    });
  });
}
