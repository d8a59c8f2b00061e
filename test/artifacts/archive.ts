import { match, ok } from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { useInstalledServer } from './installed-server.ts';
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
  await useInstalledServer(join(directory, 'bin/wharf'), { version, env, scratch });
}

/** The Node of the archive for arm64 is for arm64. It cannot be run here. */
export function checkArmArchive(directory: string, scratch: string): void {
  requireProgram('readelf');
  match(run('readelf', ['--file-header', join(directory, 'lib/node')], scratch), /Machine: +AArch64/);
}
