import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import type { Database } from '../support/databases.ts';
import { findPython } from '../support/python-program.ts';
import { npmStart } from './npm-start.ts';

const DIRECTORY = import.meta.dirname;

/** A client program that needs no compiler. */
interface ScriptedClient {
  readonly name: string;
  /** Returns its command, or why it cannot run here. */
  find(): { readonly command: readonly string[] } | { readonly missing: string };
}

const clients: readonly ScriptedClient[] = [
  {
    name: 'interop-python',
    find() {
      const environment = findPython(join(DIRECTORY, 'python', 'requirements.txt'));
      if ('missing' in environment) return environment;
      return { command: [environment.python, join(DIRECTORY, 'python', 'client.py')] };
    },
  },
  {
    name: 'interop-walk-through',
    find() {
      if (spawnSync('curl', ['--version']).status !== 0) return { missing: 'curl is not installed' };
      return { command: ['sh', join(DIRECTORY, 'walk-through.sh')] };
    },
  },
];

/**
 * Runs a client in Python, and the published walk-through with curl, against a new server on each database. Sets the
 * exit code of this process if one fails, or with CI=true if one cannot run.
 */
export async function runScriptedClients(selected: readonly Database[]): Promise<void> {
  for (const { name, find } of clients) {
    const found = find();
    if ('missing' in found) {
      const isFailure = process.env.CI === 'true';
      print(`${name}: ${isFailure ? 'FAILED, with CI=true it must not be SKIPPED' : 'SKIPPED'}: ${found.missing}`);
      if (isFailure) process.exitCode = 1;
      continue;
    }
    for (const database of selected) {
      print(`${name}: on ${database.name}`);
      if (await runOn(database, found.command)) continue;
      print(`${name}: FAILED on ${database.name}`);
      process.exitCode = 1;
    }
  }
}

async function runOn(database: Database, [program = '', ...args]: readonly string[]): Promise<boolean> {
  const location = await database.createDataLocation();
  try {
    const server = await npmStart(location, '127.0.0.1:0');
    try {
      const token = await mintOwnerToken(location.dataDir);
      const { url, organization } = server;
      const env = {
        ...{ PATH: process.env.PATH, WHARF_URL: url, WHARF_TOKEN: token, WHARF_ORG: organization },
        ...{ API: url, TOKEN: token, ORG: organization, ORG_NAME: 'my-org' },
        STORE_IMAGE: `${process.execPath} ${join(DIRECTORY, 'push-image.ts')}`,
      };
      const [code] = await once(spawn(program, args, { env, stdio: 'inherit' }), 'close');
      return code === 0;
    } finally {
      await server.stop();
    }
  } finally {
    await location.remove();
  }
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
