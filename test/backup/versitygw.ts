import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pollUntil } from '../support/poll-until.ts';

/** A real S3 server: https://github.com/versity/versitygw */
export interface S3Server {
  readonly endpoint: string;
  /** The directory that has the objects as files. */
  readonly directory: string;
  readonly bucket: string;
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const BUCKET = 'backups';
const env = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test-secret' };

export async function startVersitygw(program: string): Promise<S3Server> {
  const root = mkdtempSync(join(tmpdir(), 'wharf-s3-'));
  const directory = join(root, 'objects');
  mkdirSync(join(directory, BUCKET), { recursive: true });
  const port = await freePort();
  const child = spawn(program, ['--port', `127.0.0.1:${port}`, 'posix', directory], {
    env: { ROOT_ACCESS_KEY: env.AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: env.AWS_SECRET_ACCESS_KEY },
    cwd: root,
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const endpoint = `http://127.0.0.1:${port}`;
  await pollUntil(
    () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    (isUp) => isUp,
  );
  return {
    endpoint,
    directory: join(directory, BUCKET),
    bucket: BUCKET,
    env,
    async stop() {
      child.kill();
      await ended;
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Returns a port that no program of this machine uses now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
