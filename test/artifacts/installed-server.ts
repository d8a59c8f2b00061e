import { equal, match } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { run } from '../../tools/release/run.ts';

/** Starts an installed server, uses it by the command `wharf` of the PATH, and stops it. */
export async function useInstalledServer(
  launcher: string,
  { version, env, scratch }: { version: string; env: Readonly<Record<string, string>>; scratch: string },
): Promise<void> {
  const server = spawn(launcher, ['serve'], { env, cwd: scratch, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(server, 'exit');
  let url = '';
  const lines: string[] = [];
  for await (const line of createInterface({ input: server.stderr })) {
    lines.push(line);
    url = /"url":"(http:[^"]+)"/.exec(line)?.[1] ?? url;
    if (url) break;
  }
  server.stderr.resume();
  if (!url) throw new Error(`${launcher} did not serve:\n${lines.join('\n')}`);
  try {
    equal((await fetch(`${url}/healthz`)).status, 200);
    equal((await fetch(`${url}/docs`)).status, 200);
    const token = run('wharf', ['auth', 'token'], scratch, env).trim();
    const groups = run('wharf', ['iam', 'groups', 'list', '--server', url], scratch, { ...env, WHARF_TOKEN: token });
    match(groups, /my-org/);
    match(
      run('wharf', ['version', '--server', url], scratch, env),
      new RegExp(`^wharf +${version.replaceAll('.', '\\.')} `),
    );
  } finally {
    server.kill('SIGTERM');
  }
  await ended;
  equal(server.exitCode, 0);
}
