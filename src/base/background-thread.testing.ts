/** The tasks of background-thread.test.ts. */
export function run(input: { echo?: unknown; fail?: string; loop?: true; fill?: true }): unknown {
  if (input.fail !== undefined) throw new Error(input.fail);
  const lists: unknown[] = [];
  while (input.fill) lists.push(Array.from({ length: 1000 }, () => ({})));
  while (input.loop) lists.length = 0;
  return input.echo;
}
