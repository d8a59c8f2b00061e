import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareVersions, type VersionRules } from './compare.ts';

/** Oldest first; `=` joins versions that count as the same. */
const ladders: Readonly<Record<VersionRules, readonly string[]>> = {
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
    '1.10.0',
    '2.0.0',
  ],
};

for (const [rules, ladder] of Object.entries(ladders) as [VersionRules, readonly string[]][]) {
  test(`${rules}: every step of the ladder is above all below it`, () => {
    const steps = ladder.flatMap((step, height) => step.split(' = ').map((version) => ({ version, height })));
    for (const a of steps) {
      for (const b of steps) {
        const found = Math.sign(compareVersions(rules, a.version, b.version));
        assert.equal(found, Math.sign(a.height - b.height), `${a.version} and ${b.version}`);
      }
    }
  });

  /** Looks like a version of these rules more often than not. */
  const like = fc.oneof(
    fc.constantFrom(...ladder.flatMap((step) => step.split(' = '))),
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

  test(`${rules}: any texts can be sorted`, () => {
    fc.assert(
      fc.property(like, like, like, (a, b, c) => {
        const sign = (x: string, y: string): number => Math.sign(compareVersions(rules, x, y));
        assert.equal(sign(a, a), 0);
        assert.equal(sign(a, b), 0 - sign(b, a));
        if (sign(a, b) <= 0 && sign(b, c) <= 0) assert.ok(sign(a, c) <= 0, `${a} <= ${b} <= ${c}`);
      }),
      { seed: 5, numRuns: 3000 },
    );
  });
}
