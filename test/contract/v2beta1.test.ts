import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v2Files } from '../../src/contract/gen/files.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { v2beta1Files, withV2beta1 } from '../../src/contract/v2beta1.ts';
import { differences } from './compare-declarations.ts';
import { declarationsOfDescriptors } from './descriptors.ts';
import type { Declarations } from './recorded-contract.ts';

/** The declarations of v2 with the package version v2beta1. */
const renameToV2beta1 = (declared: Declarations): Declarations =>
  new Map(JSON.parse(JSON.stringify([...declared]).replaceAll(/(?<=[./])v2(?=[./"])/g, 'v2beta1')));

const toJsonValues = (declared: Declarations): Declarations => new Map(JSON.parse(JSON.stringify([...declared])));

test('v2beta1 differs from v2 only in its name', (t) => {
  const beta = v2beta1Files(v2Files);
  const differing = differences(
    renameToV2beta1(declarationsOfDescriptors(v2Files)),
    toJsonValues(declarationsOfDescriptors(beta)),
  );
  assert.deepEqual(differing, []);
  assert.equal(methodTable(beta).length, 78);
  t.diagnostic(`${methodTable(beta).length} methods, ${differing.length} differences`);
});

test('the method table contains every v2 method twice and all other methods once', () => {
  const table = methodTable(files);
  const served = withV2beta1(table);
  assert.equal(new Set(served.map(({ id }) => id)).size, table.length + methodTable(v2Files).length);
  const rows = served.slice(table.length).map(({ id, routes, event }) => ({ id, routes, event }));
  assert.deepEqual(
    rows,
    methodTable(v2beta1Files(v2Files)).map(({ id, routes, event }) => ({ id, routes, event })),
  );
});
