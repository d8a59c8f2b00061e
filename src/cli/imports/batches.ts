import type { JsonValue } from '@bufbuild/protobuf';
import { type ImportItem, type ImportRecord, isRefusal, type Refusal } from './import-item.ts';

/** The maximum size of a request. */
export interface BatchLimits {
  readonly records: number;
  readonly bytes: number;
}

/** The server accepts bodies of up to 4 MiB. The rest is for the JSON around the records. */
export const defaultLimits: BatchLimits = { records: 500, bytes: 3 * 1024 * 1024 };

/** Collects records into batches. Refusals and records that are too large are passed to `refuse` instead. */
export async function* batchesOf<T extends JsonValue>(
  items: AsyncIterable<ImportItem<T>>,
  limits: BatchLimits,
  refuse: (refusal: Refusal) => void,
): AsyncGenerator<readonly ImportRecord<T>[]> {
  let batch: ImportRecord<T>[] = [];
  let bytes = 0;
  for await (const item of items) {
    if (isRefusal(item)) {
      refuse(item);
      continue;
    }
    const size = Buffer.byteLength(JSON.stringify(item.record)) + 1;
    if (size > limits.bytes) {
      const { location, id } = item;
      refuse({ location, id, field: '', reason: `has ${size} bytes, but a request can have at most ${limits.bytes}` });
      continue;
    }
    if (batch.length >= limits.records || bytes + size > limits.bytes) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
