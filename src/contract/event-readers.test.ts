import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventReaders } from './event-readers.ts';
import { Capability } from './gen/capabilities/capabilities_pb.js';
import { ociFiles } from './gen/files.js';
import { files, methodTable } from './method-table.ts';

const methods = [...methodTable(files), ...methodTable(ociFiles)];

test('every event that customers receive has the capabilities to read it', () => {
  const readers = eventReaders(methods);
  for (const { event } of methods) {
    if (event?.audience === 'customer') assert.ok((readers.get(event.type)?.length ?? 0) > 0, event.type);
  }
  assert.deepEqual(readers.get('dev.chainguard.api.iam.identity.deleted.v1'), [Capability.CAP_IAM_IDENTITY_LIST]);
  assert.deepEqual(readers.get('dev.chainguard.api.platform.registry.tag.updated.v1'), [Capability.CAP_TAG_LIST]);
  const content = [Capability.CAP_REPO_LIST, Capability.CAP_MANIFEST_LIST, Capability.CAP_TAG_LIST];
  assert.deepEqual(readers.get('dev.chainguard.registry.push.v1'), content);
});

test('a contract that does not decide who may receive an event is refused', () => {
  const withoutReads = methods.filter(({ desc }) => !/^(?:Get|List)/.test(desc.name));
  assert.throws(() => eventReaders(withoutReads), /must declare readable_with/);
});
