import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { isReadableByOthers, judgeEntry, protectDataDirectory, protectUserFile } from './private-files.ts';

const USER = 1000;
const STRANGER = 2000;
const closed = { mode: 0o700, owner: USER, user: USER };
const entered = { ...closed, mode: 0o755 };
/** As Kubernetes sets it up for a pod with an fsGroup. */
const shared = { mode: 0o2770, owner: 0, user: USER };

test('the modes that servers create, and those of a shared directory, are private', () => {
  for (const directory of [closed, entered, shared]) {
    assert.deepEqual(judgeEntry({ mode: 0o600, owner: USER }, directory), { is: 'private' });
    assert.deepEqual(judgeEntry({ mode: 0o400, owner: 0 }, directory), { is: 'private' });
  }
  assert.deepEqual(judgeEntry({ mode: 0o660, owner: USER }, shared), { is: 'private' });
  assert.deepEqual(judgeEntry({ mode: 0o660, owner: STRANGER }, shared), { is: 'private' });
});

test('permissions of others and of the group are removed', () => {
  assert.deepEqual(judgeEntry({ mode: 0o644, owner: USER }, entered), { is: 'open', mode: 0o600, exposed: true });
  assert.deepEqual(judgeEntry({ mode: 0o640, owner: USER }, entered), { is: 'open', mode: 0o600, exposed: false });
  assert.deepEqual(judgeEntry({ mode: 0o666, owner: USER }, closed), { is: 'open', mode: 0o600, exposed: false });
  assert.deepEqual(judgeEntry({ mode: 0o664, owner: USER }, shared), { is: 'open', mode: 0o660, exposed: false });
});

test('what another user can have replaced is refused', () => {
  assert.deepEqual(judgeEntry({ mode: 0o602, owner: USER }, entered), { is: 'refused', reason: 'writable' });
  assert.deepEqual(judgeEntry({ mode: 0o600, owner: STRANGER }, closed), { is: 'refused', reason: 'owner' });
  const byLink = { mode: 0o600, owner: USER, linkOwner: STRANGER };
  for (const directory of [closed, entered, shared]) {
    assert.deepEqual(judgeEntry(byLink, directory), { is: 'refused', reason: 'link' });
  }
  // The directory does not protect the target of a link.
  const elsewhere = { mode: 0o606, owner: USER, linkOwner: USER };
  assert.deepEqual(judgeEntry(elsewhere, closed), { is: 'refused', reason: 'writable' });
});

test('after a change the file is private, and no change adds a permission', () => {
  const modes = fc.integer({ min: 0, max: 0o7777 });
  const users = fc.constantFrom(0, USER, STRANGER);
  fc.assert(
    fc.property(modes, users, modes, users, (mode, owner, directoryMode, directoryOwner) => {
      const directory = { mode: directoryMode, owner: directoryOwner, user: USER };
      const verdict = judgeEntry({ mode, owner }, directory);
      if (verdict.is === 'private') assert.equal(mode & 0o007, 0);
      if (verdict.is !== 'open') return;
      assert.equal(verdict.mode & ~mode, 0);
      assert.deepEqual(judgeEntry({ mode: verdict.mode, owner }, directory), { is: 'private' });
    }),
  );
});

function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'wharf-private-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('a directory that does not exist needs no protection', (t) => {
  assert.deepEqual(protectDataDirectory(join(temporaryDirectory(t), 'missing')), []);
});

test('a file system of its own counts as empty in spite of lost+found', (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'lost+found'));
  chmodSync(directory, 0o777);
  assert.match(protectDataDirectory(directory).join(), /was empty: changed to 0700$/);
});

test('a pipe and a link without a target are refused', (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'master.key');
  execFileSync('mkfifo', [path]);
  assert.throws(() => protectDataDirectory(directory), /master\.key is not a file: delete it$/);
  rmSync(path);
  symlinkSync('missing', path);
  assert.throws(() => protectDataDirectory(directory), /is a link to a file that does not exist/);
});

test('a file of the user is made private', (t) => {
  const path = join(temporaryDirectory(t), 'credentials.json');
  assert.equal(protectUserFile(path), undefined);
  writeFileSync(path, '{}', { mode: 0o644 });
  assert.equal(isReadableByOthers(path), true);
  assert.match(protectUserFile(path) ?? '', /could be read by other users \(mode 0644\): changed to 0600/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(protectUserFile(path), undefined);
  assert.equal(isReadableByOthers(path), false);
});
