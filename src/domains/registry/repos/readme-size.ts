/** In characters. The time to render a README is proportional to its length. */
export const MAX_README = 128 * 1024;
