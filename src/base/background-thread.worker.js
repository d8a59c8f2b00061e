// Runs the tasks of a background thread (background-thread.ts). It is plain JavaScript, so that Node's type stripper is
// not loaded when the compile cache has everything else.
import { enableCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

const { module, compileCache } = workerData;
if (compileCache !== undefined) enableCompileCache(compileCache);
const { run } = await import(module);

parentPort?.on('message', async (input) => {
  try {
    parentPort?.postMessage({ result: await run(input) });
  } catch (error) {
    parentPort?.postMessage({ error });
  }
});
