import type { JsonValue } from '@bufbuild/protobuf';
import { type Item, isRefused, type Refused, type Taken } from './item.ts';

/** How much goes into one request. */
export interface BatchLimits {
  readonly records: number;
  readonly bytes: number;
}

/** A server takes bodies of 4 MiB; what surrounds the records needs little of it. */
export const defaultLimits: BatchLimits = { records: 500, bytes: 3 * 1024 * 1024 };

/** Gathers records into batches. What was refused, or is larger than a batch may be, is reported and left out. */
export async function* batchesOf<T extends JsonValue>(
  items: AsyncIterable<Item<T>>,
  limits: BatchLimits,
  refuse: (refused: Refused) => void,
): AsyncGenerator<readonly Taken<T>[]> {
  let batch: Taken<T>[] = [];
  let filled = 0;
  for await (const item of items) {
    if (isRefused(item)) {
      refuse(item);
      continue;
    }
    const size = Buffer.byteLength(JSON.stringify(item.record)) + 1;
    if (size > limits.bytes) {
      const { origin, id } = item;
      refuse({ origin, id, field: '', reason: `takes ${size} bytes; at most ${limits.bytes} fit into a request` });
      continue;
    }
    if (batch.length >= limits.records || filled + size > limits.bytes) {
      yield batch;
      batch = [];
      filled = 0;
    }
    batch.push(item);
    filled += size;
  }
  if (batch.length > 0) yield batch;
}
