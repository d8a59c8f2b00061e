import { readmeProblem } from './readme-policy.ts';

/** Runs in a background thread. */
export const run = (text: string): string | undefined => readmeProblem(text);
