import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIdleCollector } from './collect-when-idle.ts';

test('garbage is collected after the process has grown, when it is idle, and then more and more rarely', () => {
  const MIB = 2 ** 20;
  let resident = 100 * MIB;
  let cpu = 0;
  let collections = 0;
  const check = createIdleCollector({
    residentBytes: () => resident,
    cpuMicroseconds: () => cpu,
    collect: () => void collections++,
  });
  check(1_000);
  assert.equal(collections, 0, 'it has not grown');
  resident = 300 * MIB;
  cpu += 900_000;
  check(1_000);
  assert.equal(collections, 0, 'it is busy');
  const afterEach = Array.from({ length: 10 }, () => {
    cpu += 10_000;
    check(1_000);
    return collections;
  });
  assert.deepEqual(afterEach, [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  cpu += 900_000;
  check(1_000);
  check(1_000);
  assert.equal(collections, 4, 'it was busy again');
  resident = 110 * MIB;
  for (let i = 0; i < 100; i++) check(1_000);
  assert.equal(collections, 4, 'it has shrunk');
});
