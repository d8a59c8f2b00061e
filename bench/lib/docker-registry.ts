import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface DockerRegistry {
  readonly url: string;
  stop(): Promise<void>;
}

const PROGRAM = 'docker-registry';

export const isInstalled = (): boolean => spawnSync(PROGRAM, ['--version']).status === 0;

/** Starts the registry that Debian packages as docker-registry: on files, without authentication and access log. */
export async function startDockerRegistry(): Promise<DockerRegistry> {
  const scratch = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(scratch, 'data') }, cache: { blobdescriptor: 'inmemory' } },
    http: { addr: `127.0.0.1:${port}`, relativeurls: true },
  };
  const file = join(scratch, 'config.yml');
  // JSON is valid YAML.
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(PROGRAM, ['serve', file], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  while (!(await isUp(url))) {
    if (child.exitCode !== null) throw new Error(`${PROGRAM} exited with ${child.exitCode}`);
    await delay(50);
  }
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

const isUp = (url: string): Promise<boolean> =>
  fetch(`${url}/v2/`).then(
    ({ ok }) => ok,
    () => false,
  );

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
