import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { bytes, chunked, digestOf, pull } from './content.testing.ts';
import type { BlobError, BlobFailure } from './errors.ts';
import type { TestStorage } from './storage.testing.ts';

/** One step of one of several concurrent uploads. */
const step = fc.record({
  upload: fc.nat({ max: 2 }),
  action: fc.constantFrom('append', 'append', 'break', 'misplace', 'restart'),
  length: fc.oneof(fc.nat({ max: 5_000 }), fc.nat({ max: 1_500_000 })),
  sizes: fc.array(fc.oneof(fc.integer({ min: 50, max: 500 }), fc.integer({ min: 1, max: 200_000 })), { minLength: 1 }),
});

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const REFUSALS: Partial<Record<Step['action'], BlobFailure['reason']>> = { break: 'interrupted', misplace: 'offset' };

export function anyOrderCases(name: string, create: () => Promise<TestStorage>): void {
  it(`uploads on ${name} have the right digest after any order of appends, interruptions and restarts`, async () => {
    const storage = await create();
    const contents = [1, 2, 3].map((seed) => bytes(2_000_000, seed));
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), (steps) => runSteps(steps, storage, contents));
    await fc.assert(property, { numRuns: 40 }).finally(() => storage.remove());
  });
}

async function runSteps(steps: readonly Step[], storage: TestStorage, contents: readonly Buffer[]): Promise<void> {
  let blobs = await storage.open();
  const begin = async (content: Buffer) => ({ id: await blobs.begin(), content, size: 0 });
  const uploads = await Promise.all(contents.map(begin));
  for (const { upload: index, action, length, sizes } of steps) {
    const upload = uploads[index];
    assert.ok(upload);
    if (action === 'restart') blobs = await storage.open();
    const part = upload.content.subarray(upload.size, upload.size + length);
    const offset = action === 'misplace' ? upload.size + 1 : upload.size;
    const source = chunked(part, sizes, action === 'break' ? new Error('interrupted') : undefined);
    const refusal = await blobs.append(upload.id, offset, source).then(
      () => undefined,
      (error: BlobError) => error.reason,
    );
    assert.equal(refusal, REFUSALS[action]);
    if (action !== 'misplace') upload.size += part.length;
    assert.equal(await blobs.offset(upload.id), upload.size);
  }
  for (const { id, content, size } of uploads) {
    const expected = content.subarray(0, size);
    await blobs.finish(id, digestOf(expected));
    assert.ok(expected.equals(await pull(blobs, digestOf(expected))));
  }
}
