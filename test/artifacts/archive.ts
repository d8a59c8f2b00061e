import { equal, match, ok } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from '../../tools/release/run.ts';
import { requireProgram } from './programs.ts';
import type { Release } from './release.ts';

/** Unpacks an archive and returns its directory. */
export function unpackArchive({ version, artifact }: Release, platform: string, scratch: string): string {
  mkdirSync(join(scratch, platform));
  run('tar', ['-xzf', artifact(`${platform}.tar.gz`), '-C', join(scratch, platform)], scratch);
  const directory = join(scratch, platform, `wharfinger-${version}-${platform}`);
  const files = ['LICENSE', 'INSTALL.md', 'sbom.spdx.json', 'lib/THIRD-PARTY-NOTICES.txt', 'lib/NODE-LICENSE'];
  for (const file of files) ok(existsSync(join(directory, file)), file);
  return directory;
}

/** The unpacked archive serves without anything on the PATH but the tools of the system, also through a link. */
export async function runArchive({ version }: Release, directory: string, scratch: string): Promise<void> {
  const tools = join(scratch, 'tools');
  mkdirSync(tools);
  for (const name of ['dirname', 'readlink']) run('ln', ['-s', run('which', [name], scratch).trim(), tools], scratch);
  run('ln', ['-s', join(directory, 'bin/wharf'), join(tools, 'wharf')], scratch);
  const env = { PATH: tools, WHARF_LISTEN: '127.0.0.1:0', WHARF_DATA: join(scratch, 'archive-data') };
  const server = spawn(join(directory, 'bin/wharf'), ['serve'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(server, 'exit');
  let url = '';
  for await (const line of createInterface({ input: server.stderr })) {
    url = /"url":"(http:[^"]+)"/.exec(line)?.[1] ?? url;
    if (url) break;
  }
  server.stderr.resume();
  try {
    equal((await fetch(`${url}/healthz`)).status, 200);
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

/** The Node of the archive for arm64 is for arm64. It cannot be run here. */
export function checkArmArchive(directory: string, scratch: string): void {
  requireProgram('readelf');
  match(run('readelf', ['--file-header', join(directory, 'lib/node')], scratch), /Machine: +AArch64/);
}
