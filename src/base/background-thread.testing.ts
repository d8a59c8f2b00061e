/** The tasks of background-thread.test.ts. */
export function run(input: { echo?: unknown; fail?: string; loop?: true }): unknown {
  if (input.fail !== undefined) throw new Error(input.fail);
  while (input.loop);
  return input.echo;
}
