import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIdleCollector } from './collect-when-idle.ts';

test('garbage is collected once after the process has grown, when it is idle', () => {
  const MIB = 2 ** 20;
  let resident = 100 * MIB;
  let cpu = 0;
  let collections = 0;
  const check = createIdleCollector({
    residentBytes: () => resident,
    cpuMicroseconds: () => cpu,
    collect() {
      collections++;
      resident -= 50 * MIB;
    },
  });
  check(1_000);
  assert.equal(collections, 0, 'it has not grown');
  resident = 300 * MIB;
  cpu += 900_000;
  check(1_000);
  assert.equal(collections, 0, 'it is busy');
  cpu += 10_000;
  check(1_000);
  assert.equal(collections, 1);
  check(1_000);
  assert.equal(collections, 1, 'it has not grown again');
  resident += 20 * MIB;
  check(1_000);
  assert.equal(collections, 2);
});
