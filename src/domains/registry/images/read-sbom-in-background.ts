import { createBackgroundThread, TaskLimitError } from '../../../base/background-thread.ts';
import { mapInSlices, startSlices } from '../../../base/slices.ts';
import type { Sbom } from '../../../formats/sbom/sbom.ts';
import type { SlicedSbom } from './read-sbom.task.ts';

// Parsing an SBOM of 16 MiB takes about half a second, and JSON.parse cannot be divided into slices.
const thread = createBackgroundThread<Uint8Array, SlicedSbom | undefined>(
  new URL('./read-sbom.task.ts', import.meta.url),
  { taskMs: 30_000 },
);

/** Parses an SBOM in a background thread. Returns undefined when its format is not supported. */
export async function readSbomInBackground(bytes: Uint8Array): Promise<Sbom | undefined> {
  const sliced = await thread.run(bytes).catch((error) => {
    if (error instanceof TaskLimitError) return undefined;
    throw error;
  });
  if (!sliced) return undefined;
  const slices = startSlices();
  const parse = async <T>(texts: readonly string[]): Promise<T[]> =>
    (await mapInSlices(texts, (text) => JSON.parse(text) as T[], slices)).flat();
  return {
    ...sliced,
    packages: await parse<Sbom['packages'][number]>(sliced.packages),
    files: await parse<Sbom['files'][number]>(sliced.files),
    relations: await parse<Sbom['relations'][number]>(sliced.relations),
  };
}
