import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { loadCvssParser } from './cvss.ts';

const parseCvss = await loadCvssParser();

/** Examples from the first.org documents of each version, with the scores published there. */
const published: readonly [vector: string, score: number, level: string][] = [
  ['AV:N/AC:L/Au:N/C:N/I:N/A:C', 7.8, 'high'], // CVE-2002-0392
  ['AV:N/AC:L/Au:N/C:C/I:C/A:C', 10, 'high'], // CVE-2003-0818
  ['AV:L/AC:H/Au:N/C:C/I:C/A:C', 6.2, 'medium'], // CVE-2003-0062
  ['CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N', 6.1, 'medium'],
  ['CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N', 6.4, 'medium'], // CVE-2013-0375
  ['CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N', 3.1, 'low'], // CVE-2014-3566
  ['CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:H/I:H/A:H', 9.9, 'critical'], // CVE-2012-1516
  ['CVSS:3.1/AV:L/AC:L/PR:H/UI:N/S:U/C:L/I:L/A:L', 4.2, 'medium'], // CVE-2009-0658 without scope change
  ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N', 7.5, 'high'], // CVE-2014-0160
  ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H', 9.8, 'critical'], // CVE-2014-6271
  ['CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N', 0, 'none'],
  ['CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N', 7.3, 'high'], // CVE-2022-41741
  ['CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N', 7.7, 'high'], // CVE-2020-3549
  ['CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H', 10, 'critical'], // CVE-2021-44228
];

test('published vectors score as published', () => {
  for (const [vector, score, level] of published) {
    const found = parseCvss(vector);
    assert.deepEqual([found?.score, found?.level], [score, level], vector);
  }
});

test('invalid and incomplete vectors', () => {
  const bad = [
    '',
    'high',
    '7.5',
    'AV:N/AC:L',
    'CVSS:3.1/AV:N',
    'CVSS:3.1/AV:Z/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
    'CVSS:9.9/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
  ];
  for (const vector of bad) assert.equal(parseCvss(vector), undefined, vector);
});

/** The base metrics of each version. */
const bases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '': { AV: 'LAN', AC: 'HML', Au: 'MSN', C: 'NPC', I: 'NPC', A: 'NPC' },
  'CVSS:3.1/': { AV: 'NALP', AC: 'LH', PR: 'NLH', UI: 'NR', S: 'UC', C: 'HLN', I: 'HLN', A: 'HLN' },
  'CVSS:4.0/': {
    ...{ AV: 'NALP', AC: 'LH', AT: 'NP', PR: 'NLH', UI: 'NPA' },
    ...{ VC: 'HLN', VI: 'HLN', VA: 'HLN', SC: 'HLN', SI: 'HLN', SA: 'HLN' },
  },
};

for (const [prefix, base] of Object.entries(bases)) {
  test(`any vector of base metrics has a score from 0 to 10: ${prefix || 'CVSS 2'}`, () => {
    const metrics = Object.entries(base).map(([name, values]) =>
      fc.constantFrom(...values).map((value) => `${name}:${value}`),
    );
    const vectors = fc.tuple(...metrics).chain((some) => fc.shuffledSubarray(some, { minLength: some.length }));
    fc.assert(
      fc.property(vectors, fc.nat(), (parts, n) => {
        const { version, score = -1 } = parseCvss(`${prefix}${parts.join('/')}`) ?? {};
        assert.ok(version === Number(prefix[5] ?? 2) && score >= 0 && score <= 10, parts.join('/'));
        // A vector without one of the metrics, or with one twice, is invalid.
        const at = n % parts.length;
        assert.equal(parseCvss(`${prefix}${parts.toSpliced(at, 1).join('/')}`), undefined);
        assert.equal(parseCvss(`${prefix}${[...parts, parts[at]].join('/')}`), undefined);
      }),
      { seed: 5 },
    );
  });
}

test('any text can be parsed', () => {
  fc.assert(
    fc.property(fc.string(), (text) => void parseCvss(text)),
    { seed: 5 },
  );
});
