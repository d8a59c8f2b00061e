import nodeModule from 'node:module';
import { join } from 'node:path';

// SIGUSR1 would open the debugger of Node. The start flags prevent it too, see v8-flags.ts.
process.on('SIGUSR1', () => {});

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 16)) {
  process.stderr.write(
    `wharf: needs Node 22.16 or later, and this is ${process.version}: start it with a newer Node\n`,
  );
  process.exitCode = 1;
} else {
  // Keeps compiled code between starts, which saves a quarter of the start. It is beside the program: any user could
  // plant code in the shared temporary directory. If the directory cannot be written, Node does without.
  nodeModule.enableCompileCache(join(import.meta.dirname, '.compile-cache'));
  // Not a static import, which an old Node would fail to load before it prints the message above.
  const { runWharf } = await (process.argv[2] === 'serve' ? import('./run-serve.ts') : import('./run-client.ts'));
  await runWharf(process.argv.slice(2));
}
