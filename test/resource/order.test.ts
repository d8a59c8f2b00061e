import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError, Code } from '../../src/base/errors.ts';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { parseOrder } from '../../src/resource/list/order.ts';

const parse = (text: string) => parseOrder(groups, text);

test('parses fields and directions', () => {
  assert.deepEqual(parse(''), { terms: [], uidDescending: false });
  assert.deepEqual(parse('name'), { terms: [{ field: 'name', descending: false }], uidDescending: false });
  assert.deepEqual(parse('name desc'), { terms: [{ field: 'name', descending: true }], uidDescending: true });
  assert.deepEqual(parse(' name  DESC , created_at '), {
    terms: [
      { field: 'name', descending: true },
      { field: 'create_time', descending: false },
    ],
    uidDescending: true,
  });
});

test('times have two names', () => {
  assert.deepEqual(parse('created_at desc'), parse('create_time desc'));
  assert.deepEqual(parse('updated_at'), parse('updateTime'));
});

test('terms after uid are ignored, because uid is unique', () => {
  assert.deepEqual(parse('uid desc, name'), { terms: [], uidDescending: true });
});

for (const invalid of [
  'size',
  'name sideways',
  'name desc desc',
  'name,',
  'name, name desc',
  'name; DROP TABLE resource',
]) {
  test(`refuses ${JSON.stringify(invalid)}`, () => {
    assert.throws(() => parse(invalid), isInvalidOrder);
  });
}

test('any other text is refused as an invalid argument', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parse(text);
      } catch (error) {
        assert.ok(isInvalidOrder(error));
      }
    }),
    { seed: 7, numRuns: 2000 },
  );
});

function isInvalidOrder(error: unknown): boolean {
  const [detail] = error instanceof ApiError && error.code === Code.INVALID_ARGUMENT ? error.details : [];
  return detail?.type === 'BadRequest' && detail.fieldViolations[0]?.field === 'order_by';
}
