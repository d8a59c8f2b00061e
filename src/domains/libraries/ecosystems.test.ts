import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { isLater, rulesOf } from './ecosystems.ts';

const { JAVA, PYTHON } = Ecosystem;

/** Versions in ascending order. */
const orders: readonly [Ecosystem, readonly string[]][] = [
  [PYTHON, ['nonsense', '5.0.dev1', '5.0a1', '5.0rc1', '1!1.0rc1', '4.2', '4.10', '4.10.post1', '1!0.1']],
  [JAVA, ['2.0-alpha-1', '2.0.0.Beta1', '2.0-rc1', '3.0-SNAPSHOT', '1.0.Final', '1.9', '1.10', '1.10.1-jre']],
];

for (const [ecosystem, versions] of orders) {
  test(`the latest version of ${Ecosystem[ecosystem]} is a release if there is one, and then the newest`, () => {
    for (const [at, version] of versions.entries()) {
      for (const [before, other] of versions.slice(0, at).entries()) {
        assert.ok(isLater(ecosystem, version, other), `${version} is later than ${versions[before]}`);
        assert.ok(!isLater(ecosystem, other, version), `${other} is not later than ${version}`);
      }
      assert.ok(!isLater(ecosystem, version, version));
    }
  });
}

test('normalizes names and versions', () => {
  const { normalizeName, normalizeVersion } = rulesOf(PYTHON);
  assert.equal(normalizeName('Zope__Interface.-x'), 'zope-interface-x');
  assert.equal(normalizeVersion('v1.0-BETA.2'), '1.0b2');
  assert.equal(normalizeVersion('2004d'), '2004d');
  assert.equal(rulesOf(JAVA).normalizeName('Org.X:Y'), 'Org.X:Y');
});

test('reads the CUDA version from a version', () => {
  const { cudaOf } = rulesOf(PYTHON);
  const expected = { '2.1.0+cu121': '12.1', '1.0+cu92': '9.2', '1.0+pt20.cu118': '11.8', '1.0': '', '1.0+cpu': '' };
  for (const [version, cuda] of Object.entries(expected)) assert.equal(cudaOf(version), cuda, version);
  assert.equal(rulesOf(JAVA).cudaOf('1.0+cu121'), '');
});
