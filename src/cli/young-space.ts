import { setFlagsFromString } from 'node:v8';

/**
 * All that is loaded at a start stays, which V8 takes for a sign that young objects need more space: it gives them all it
 * has, 25 MB that a server at rest never needs again. So it may grow only afterwards, as far as the load asks for it.
 */
export const letYoungSpaceGrow = (grows: boolean): void =>
  setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);
