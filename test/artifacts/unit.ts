import { equal, match, ok } from 'node:assert/strict';
import { chownSync, lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { bind, startContainer, useServer, waitUntilServing } from './container.ts';
import { requireProgram, requireRoot } from './programs.ts';
import { checkSettings } from './settings.ts';

/** Below 2 counts as OK. What stays is the network, which a server needs. */
const MAX_EXPOSURE = 1.5;
const PREFIX = '/opt/wharfinger';
const UID = 65534;

const readUnit = (archive: string): string => readFileSync(join(archive, 'share/systemd/wharfinger.service'), 'utf8');

/** Returns the values of all lines with this key. */
const valuesOf = (unit: string, key: string): string[] =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

/** systemd accepts the unit, rates it as hardened, and its settings are known. */
export function checkUnit(archive: string, scratch: string): void {
  requireProgram('systemd-analyze');
  const unit = readUnit(archive);
  const file = join(scratch, 'wharfinger.service');
  writeFileSync(file, unit.replaceAll(PREFIX, archive));
  equal(run('sh', ['-c', `systemd-analyze verify --man=no ${file} 2>&1`], scratch), '');
  const rating = run('systemd-analyze', ['security', '--offline=true', '--no-pager', file], scratch);
  const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(rating)?.[1]);
  ok(exposure <= MAX_EXPOSURE, `the exposure level is ${exposure}:\n${rating}`);
  checkSettings(Object.fromEntries(valuesOf(unit, 'Environment').map((line) => line.split('=', 2))));
}

/**
 * ExecStart of the unit serves with what the unit leaves it: its system calls, a read-only system, its state directory,
 * no capabilities, and a /proc with processes only. runc stands in for systemd, which does not run in a container.
 */
export async function runUnit(archive: string, scratch: string): Promise<void> {
  for (const program of ['runc', 'systemd-analyze']) requireProgram(program);
  requireRoot();
  const unit = readUnit(archive);
  const state = join(scratch, 'unit-state');
  mkdirSync(state, { mode: 0o700 });
  chownSync(state, UID, UID);
  const container = startContainer({
    directory: join(scratch, 'unit-container'),
    rootfs: systemRoot(join(scratch, 'unit-root')),
    args: valuesOf(unit, 'ExecStart').flatMap((line) => line.split(' ')),
    env: ['PATH=/usr/bin', ...valuesOf(unit, 'Environment')],
    cwd: '/',
    uid: UID,
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['subset=pid', 'hidepid=invisible'] },
      bind('/usr', '/usr', 'ro'),
      bind(archive, PREFIX, 'ro'),
      bind(state, '/var/lib/private/wharfinger', 'rw'),
    ],
    seccomp: {
      defaultAction: 'SCMP_ACT_ERRNO',
      defaultErrnoRet: 1,
      syscalls: [{ names: allowedCalls(unit, scratch), action: 'SCMP_ACT_ALLOW' }],
    },
  });
  try {
    await waitUntilServing(container);
    useServer(container, `${PREFIX}/bin/wharf`);
    equal(await container.stop(), 0, container.output());
    match(container.output(), /"message":"stopped"/);
  } finally {
    container.remove();
  }
}

/** A root with the directories that systemd gives the unit. The data directory is a link, as with DynamicUser. */
function systemRoot(directory: string): string {
  for (const path of ['usr', 'proc', 'dev', 'etc', 'opt/wharfinger', 'var/lib/private/wharfinger']) {
    mkdirSync(join(directory, path), { recursive: true });
  }
  symlinkSync('private/wharfinger', join(directory, 'var/lib/wharfinger'));
  for (const name of ['bin', 'lib', 'lib64']) {
    if (!lstatSync(`/${name}`).isSymbolicLink()) throw new Error(`/${name} is not a link into /usr`);
    symlinkSync(readlinkSync(`/${name}`), join(directory, name));
  }
  return directory;
}

/** The system calls that the lines SystemCallFilter= leave. A line that begins with ~ removes calls. */
function allowedCalls(unit: string, scratch: string): string[] {
  const allowed = new Set(expand('@default', scratch));
  for (const line of valuesOf(unit, 'SystemCallFilter')) {
    const calls = line
      .replace(/^~/, '')
      .split(' ')
      .flatMap((name) => expand(name, scratch));
    for (const call of calls) line.startsWith('~') ? allowed.delete(call) : allowed.add(call);
  }
  return [...allowed];
}

/** The calls of a set such as `@system-service`, or the one call. */
function expand(name: string, scratch: string): string[] {
  if (!name.startsWith('@')) return [name];
  const lines = run('systemd-analyze', ['syscall-filter', '--no-pager', name], scratch).split('\n').slice(1);
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => expand(line, scratch));
}
