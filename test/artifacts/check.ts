/** Thrown by a check whose program is not installed. */
export class SkippedError extends Error {}

/**
 * Runs a check, prints its result and returns whether it passed. A failure sets the exit code, and so does a skipped check in CI (the environment
 * has CI=true), where all programs must be there.
 */
export async function check(name: string, run: () => Promise<void> | void): Promise<boolean> {
  const start = performance.now();
  const print = (result: string) =>
    process.stdout.write(`artifacts: ${name}: ${result} (${((performance.now() - start) / 1000).toFixed(1)} s)\n`);
  try {
    await run();
    print('ok');
    return true;
  } catch (error) {
    if (error instanceof SkippedError) {
      print(`SKIPPED, because ${error.message}`);
      if (process.env.CI === 'true') process.exitCode = 1;
    } else {
      print(`FAILED: ${(error as Error).stack}`);
      process.exitCode = 1;
    }
    return false;
  }
}
