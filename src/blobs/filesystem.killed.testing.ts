/** Run by filesystem.kill.test.ts as a process that pushes several blobs concurrently until it is killed. */

import { bytes, chunked, digestOf } from './content.testing.ts';
import { openFilesystemBlobs } from './filesystem.ts';

/** Computes the content of a blob from its number, so that the parent process can check it. */
export const contentOf = (number: number): Buffer => bytes(((number * 7_919) % 23) ** 2 * 3_000, number);

async function main(root: string, first: number): Promise<void> {
  const blobs = await openFilesystemBlobs(root);
  const report = (...words: readonly (string | number)[]): boolean => process.stdout.write(`${words.join(' ')}\n`);
  let next = first;
  const pusher = async (): Promise<never> => {
    for (;;) {
      const number = next++;
      const content = contentOf(number);
      const id = await blobs.begin();
      report('begun', number, id);
      await blobs.append(id, 0, chunked(content));
      await blobs.finish(id, digestOf(content));
      report('finished', number, id);
    }
  };
  await Promise.all([pusher(), pusher(), pusher()]);
}

if (import.meta.main) await main(process.argv[2] ?? '', Number(process.argv[3]));
