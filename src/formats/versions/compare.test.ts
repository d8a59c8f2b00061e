import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import semver from 'semver';
import { compareVersions, type VersionScheme } from './compare.ts';

/** Oldest first. `=` joins versions that are equal. */
const orders: Readonly<Record<VersionScheme, readonly string[]>> = {
  apk: [
    'nonsense',
    '0.9',
    '1_alpha_pre2',
    '1_alpha',
    '1_alpha1',
    '1_beta',
    '1_pre2',
    '1_rc1',
    '1',
    '1-r0',
    '1-r1',
    '1-r10',
    '1_git20240101',
    '1_p1',
    '1a',
    '1b',
    '1.0',
    '1.05',
    '1.1',
    '1.2-r0',
    '1.2.3_rc1-r0',
    '1.2.3-r0',
    '1.2.3-r2',
    '1.11.2-r2',
    '2.0',
    '10',
  ],
  deb: [
    '1 2',
    '1-',
    '1.0:2',
    ':1',
    '0.9',
    '1.0~~',
    '1.0~~a',
    '1.0~',
    '1.0~rc1-1',
    '1.0 = 1.0-0 = 0:1.0',
    '1.0-1',
    '1.0-1ubuntu1',
    '1.0-2 = 1.00-2',
    '1.0a',
    '1.0+dfsg-1',
    '1.2',
    '1.10',
    '1:0.1',
  ],
  gem: [
    'master',
    '0.9',
    '1.0.a',
    '1.0.a.1 = 1.a1',
    '1.0.0-rc1 = 1.pre.rc1',
    '1.0.rc1 = 1.rc.1',
    '1.0.rc10',
    '1 = 1.0 = 1.0.0',
    '1.0.0.1',
    '4.2.11.1',
    '5.2.4',
    '5.2.4.3',
    '5.2.4.10',
    '5.2.5',
  ],
  composer: [
    'dev-master',
    '0.9',
    '1.0.0-dev = 1.0dev',
    '1.0.0-alpha = 1.0-a = v1.0.0alpha',
    '1.0.0-beta1-dev',
    '1.0.0-beta1 = 1.0.0b1 = 1.0.0.beta.1',
    '1.0.0-beta10',
    '1.0.0-RC1 = 1.0.0rc-1',
    '1.0.0 = 1 = v1.0 = 1.0.0.0 = 1.0.0-stable = 1.0.0+build',
    '1.0.0-patch1 = 1.0.0p1 = 1.0-pl1',
    '1.0.0.1',
    '1.10',
    '2.0',
  ],
  nuget: [
    'latest',
    '1.0.0-alpha = 1.0.0-ALPHA',
    '1.0.0-beta.2',
    '1.0.0 = 1.0.0.0 = 1.0 = 1.0.0+abc',
    '1.0.0.1-rc',
    '1.0.0.1',
    '4.7.2558.0',
    '4.10.0',
  ],
  rpm: [
    '1-2-3',
    '0.9',
    '1.0~rc1',
    '1.0~rc2',
    '1.0 = 1_0 = 0:1.0 = 1.00',
    '1.0-1.el9',
    '1.0-2.el9',
    '1.0-10.el9',
    '1.0^20240101git1',
    '1.0a = 1.0.a',
    '1.0.1',
    '1.1',
    '1.10',
    '1:0.1',
  ],
  pypi: [
    'not a version',
    '1.0.dev1',
    '1.0a1.dev1',
    '1.0a1 = 1.0alpha1',
    '1.0b2',
    '1.0rc1 = 1.0c1',
    '1.0 = 1 = 1.0.0 = v1.0',
    '1.0+local.1',
    '1.0.post1',
    '1.1.dev1',
    '1.1',
    '1.10',
    '2!0.1',
  ],
  maven: [
    '1-alpha-1 = 1-a1 = 1alpha1',
    '1-beta',
    '1-milestone-2 = 1-m2',
    '1-rc = 1-cr',
    '1-snapshot = 1-SNAPSHOT',
    '1 = 1.0 = 1.0.0 = 1-ga = 1.final = 1-release',
    '1-sp',
    '1-abc',
    '1-xyz',
    '1-1',
    '1-2',
    '1.0.1 = 1.0.1.0',
    '1.1',
    '1.2-rc1',
    '1.2',
    '1.10',
    '2.0.0.RC1 = 2-rc-1 = 2.0.rc1',
    '2.0.0.RELEASE',
    '10',
  ],
  semver: [
    '1.0.0-',
    '1.0.0-a..b',
    'nonsense',
    '0 = 0.0.0',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0 = v1.0.0 = 1 = 1.0 = 1.0.0+build',
    '1.0.4-0.20180125103619-43913f2f4fbd',
    '1.0.4',
    '1.0.4.1',
    '1.10.0',
    '2.0.0',
    '99999999999999999999.0.0',
  ],
};

for (const [scheme, order] of Object.entries(orders) as [VersionScheme, readonly string[]][]) {
  test(`${scheme}: each version is newer than all before it in the list`, () => {
    const steps = order.flatMap((step, position) => step.split(' = ').map((version) => ({ version, position })));
    for (const a of steps) {
      for (const b of steps) {
        const found = Math.sign(compareVersions(scheme, a.version, b.version));
        assert.equal(found, Math.sign(a.position - b.position), `${a.version} and ${b.version}`);
      }
    }
  });

  /** Mostly texts that look like versions of the scheme. */
  const versionLike = fc.oneof(
    fc.constantFrom(...order.flatMap((step) => step.split(' = '))),
    fc
      .array(
        fc.constantFrom(...['0', '1', '2', '00', '10', '.', '-', '_', '~', '^', ':', '+', 'a', 'rc', 'p', '-r1']),
        {
          maxLength: 8,
        },
      )
      .map((parts) => parts.join('')),
    fc.string({ maxLength: 6 }),
  );

  test(`${scheme}: any texts can be sorted`, () => {
    fc.assert(
      fc.property(versionLike, versionLike, versionLike, (a, b, c) => {
        const sign = (x: string, y: string): number => Math.sign(compareVersions(scheme, x, y));
        assert.equal(sign(a, a), 0);
        assert.equal(sign(a, b), 0 - sign(b, a));
        if (sign(a, b) <= 0 && sign(b, c) <= 0) assert.ok(sign(a, c) <= 0, `${a} <= ${b} <= ${c}`);
      }),
      { seed: 5, numRuns: 3000 },
    );
  });
}

test('semver: the order is that of the npm package semver', () => {
  const part = fc.constantFrom('0', '1', '2', '10');
  const id = fc.constantFrom('0', '1', '11', 'a', 'rc', 'rc1', '-', '1a');
  const semantic = fc
    .tuple(part, part, part, fc.array(id, { maxLength: 3 }), fc.constantFrom('', '+1', '+b.2'))
    .map(([a, b, c, ids, build]) => `${a}.${b}.${c}${ids.length > 0 ? `-${ids.join('.')}` : ''}${build}`);
  fc.assert(
    fc.property(semantic, semantic, (a, b) => {
      assert.equal(Math.sign(compareVersions('semver', a, b)), semver.compare(a, b), `${a} and ${b}`);
    }),
    { seed: 5, numRuns: 2000 },
  );
});

const hasDpkg = spawnSync('dpkg', ['--version']).status === 0;

test('deb: the order is that of dpkg', { skip: !hasDpkg && 'dpkg is not installed' }, () => {
  const compareByDpkg = (a: string, b: string): number =>
    ['lt', 'eq', 'gt'].findIndex((is) => spawnSync('dpkg', ['--compare-versions', a, is, b]).status === 0) - 1;
  const parts = ['0', '1', '10', '01', '.', '.', '+', '~', 'a', 'Z', '-', '-1'];
  const version = fc
    .tuple(fc.constantFrom('', '0:', '1:'), fc.array(fc.constantFrom(...parts), { maxLength: 6 }))
    .map(([epoch, rest]) => `${epoch}1${rest.join('')}0`);
  fc.assert(
    fc.property(version, version, (a, b) => {
      assert.equal(Math.sign(compareVersions('deb', a, b)), compareByDpkg(a, b), `${a} and ${b}`);
    }),
    { seed: 5, numRuns: 100 },
  );
});
