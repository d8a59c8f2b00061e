import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createUploadIds } from './upload-ids.ts';

const key = randomBytes(32);
const ids = createUploadIds(key);
const id = randomUUID();

test('an upload id is valid for its repo and caller, also after a restart', () => {
  const name = ids.write(id, 'repo', 'caller');
  assert.equal(ids.read(name, 'repo', 'caller'), id);
  assert.equal(createUploadIds(key).read(name, 'repo', 'caller'), id);
});

test('an upload id is invalid for another repo or caller, or when altered', () => {
  const name = ids.write(id, 'repo', 'caller');
  assert.equal(ids.read(name, 'other', 'caller'), undefined);
  assert.equal(ids.read(name, 'repo', 'somebody'), undefined);
  assert.equal(ids.read(name, 'repo\ncaller', ''), undefined);
  assert.equal(createUploadIds(randomBytes(32)).read(name, 'repo', 'caller'), undefined);
  for (const altered of [
    '',
    id,
    `${id}.`,
    name.slice(0, -1),
    name.replace(/^./, 'z'),
    `${randomUUID()}.${name.split('.')[1]}`,
  ]) {
    assert.equal(ids.read(altered, 'repo', 'caller'), undefined, altered);
  }
});
