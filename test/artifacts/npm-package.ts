import { match, throws } from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { useInstalledServer } from './installed-server.ts';
import type { Release } from './release.ts';

/** The last release of the oldest line that the package supports. */
const OLDEST_NODE = '22.23.3';

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin';

/** Installs the package globally, and returns the directory of its programs. */
export function installPackage({ clone, version }: Release, scratch: string): string {
  const prefix = join(scratch, 'npm-global');
  const tarball = join(clone, `release/wharfinger-${version}.tgz`);
  run('npm', ['install', '--global', '--offline', '--prefix', prefix, tarball], scratch);
  return join(prefix, 'bin');
}

/** The installed package serves on the Node of this process, and on the oldest that it supports. */
export async function runPackage({ version }: Release, bin: string, scratch: string): Promise<void> {
  for (const node of [dirname(process.execPath), installNode(OLDEST_NODE, scratch)]) {
    const name = run(join(node, 'node'), ['--version'], scratch).trim();
    const env = {
      PATH: `${bin}:${node}:${SYSTEM_PATH}`,
      WHARF_LISTEN: '127.0.0.1:0',
      WHARF_DATA: join(scratch, `npm-data-${name}`),
    };
    await useInstalledServer(join(bin, 'wharf'), { version, env, scratch });
    match(run('wharfinger', ['--version'], scratch, env), new RegExp(`^${version.replaceAll('.', '\\.')}\n$`));
  }
}

/** On an older Node, and without any, the programs say what they need. */
export function checkOldNode(bin: string, scratch: string): void {
  const old = join(scratch, 'old-node');
  mkdirSync(old);
  writeFileSync(join(old, 'node'), '#!/bin/sh\necho v20.20.2\n');
  chmodSync(join(old, 'node'), 0o755);
  const tools = join(scratch, 'npm-tools');
  mkdirSync(tools);
  for (const name of ['dirname', 'readlink']) run('ln', ['-s', run('which', [name], scratch).trim(), tools], scratch);
  const wharf = (path: string) => () => run(join(bin, 'wharf'), ['--version'], scratch, { PATH: path });
  throws(wharf(`${old}:${tools}`), /needs Node 22\.16 or later, and the one on the PATH is v20\.20\.2/);
  throws(wharf(tools), /needs Node 22\.16 or later, and there is none on the PATH/);
}

/** Returns the directory of a Node from npm. */
function installNode(version: string, scratch: string): string {
  const directory = join(scratch, `node-${version}`);
  mkdirSync(directory);
  const manifest = { private: true, dependencies: { node: version }, allowScripts: { node: true } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
  run('npm', ['install', '--no-audit', '--no-fund'], directory);
  return join(directory, 'node_modules/node/bin');
}
