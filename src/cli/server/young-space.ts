import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/**
 * All that is loaded at a start stays, which V8 takes for a sign that young objects need more space: it gives them all it
 * has, 25 MB that a server at rest never needs again. So it may grow only afterwards, as far as the load asks for it.
 */
export const letYoungSpaceGrow = (grows: boolean): void =>
  setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);

/** Half of what V8 would take in the end. It has a flag for the limit, but reads that only before it runs anything. */
const ENOUGH = 32 * 1024 * 1024;
const LOOK_EVERY_MS = 1_000;

/** Lets the young space grow under load until it has enough. */
export function letYoungSpaceGrowUnderLoad(): void {
  letYoungSpaceGrow(true);
  const watch = setInterval(() => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    if (young && young.space_size < ENOUGH) return;
    letYoungSpaceGrow(false);
    clearInterval(watch);
  }, LOOK_EVERY_MS);
  watch.unref();
}
