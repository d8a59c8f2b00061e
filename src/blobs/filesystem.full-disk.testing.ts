/** Run by filesystem.full-disk.test.ts where at most 4 MiB can be stored. Prints what happened. */

import { all, bytes, chunked, digestOf, pull, push } from './content.testing.ts';
import { openFilesystemBlobs } from './filesystem.ts';

const blobs = await openFilesystemBlobs(process.argv[2] ?? '');
const small = bytes(500_000);
const large = bytes(12_000_000);

await push(blobs, small);
const id = await blobs.begin();
await blobs.append(id, 0, chunked(large.subarray(0, 2_000_000)));
const refusal = await blobs
  .append(id, 2_000_000, chunked(large.subarray(2_000_000)))
  .catch((error: Error) => error.message);
const report = {
  refusal,
  offset: (await blobs.offset(id)) ?? null,
  uploads: (await all(blobs.uploads())).length,
  blobs: (await all(blobs.list())).length,
  readable: small.equals(await pull(blobs, digestOf(small))),
  // Fits only if the space of the refused upload is free again.
  next: await push(blobs, large.subarray(0, 3_000_000)).then(() => 'stored'),
};
process.stdout.write(JSON.stringify(report));
