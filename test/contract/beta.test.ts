import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, methodTable, v2Files } from '../../src/contract/method-table.ts';
import { v2beta1Files, withV2beta1 } from '../../src/contract/v2beta1.ts';
import { differences } from './comparison.ts';
import { declaredByDescriptors } from './descriptors.ts';
import type { Declarations } from './facts.ts';

/** Everything that v2 declares, under the other name. */
const asBeta = (declared: Declarations): Declarations =>
  new Map(JSON.parse(JSON.stringify([...declared]).replaceAll(/(?<=[./])v2(?=[./"])/g, 'v2beta1')));

const plain = (declared: Declarations): Declarations => new Map(JSON.parse(JSON.stringify([...declared])));

test('v2beta1 is v2 in all but the name', (t) => {
  const beta = v2beta1Files(v2Files);
  const found = differences(asBeta(declaredByDescriptors(v2Files)), plain(declaredByDescriptors(beta)));
  assert.deepEqual(found, []);
  t.diagnostic(`${methodTable(beta).length} methods, ${found.length} differences`);
});

test('the table has every v2 method twice, and all others once', () => {
  const table = methodTable(files);
  const served = withV2beta1(table);
  assert.equal(new Set(served.map(({ id }) => id)).size, table.length + 78);
  const rows = served.slice(table.length).map(({ id, routes, event }) => ({ id, routes, event }));
  assert.deepEqual(
    rows,
    methodTable(v2beta1Files(v2Files)).map(({ id, routes, event }) => ({ id, routes, event })),
  );
});
