/** Runs the tasks of a background thread, see background-thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';

const { run } = await import(workerData.module);

parentPort?.on('message', async (input) => {
  try {
    parentPort?.postMessage({ result: await run(input) });
  } catch (error) {
    parentPort?.postMessage({ error });
  }
});
