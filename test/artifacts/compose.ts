import { match, ok, throws } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { run } from '../../tools/release/run.ts';
import { goProgram } from './programs.ts';
import type { Release } from './release.ts';
import { checkSettings } from './settings.ts';

/** The compose file is valid with the variables of .env.example, and sets known settings only. */
export function checkCompose({ artifact }: Release, scratch: string): void {
  const compose = goProgram('./compose-config', scratch);
  run('tar', ['-xzf', artifact('compose.tar.gz'), '-C', scratch], scratch);
  const directory = join(scratch, 'wharfinger-compose');
  throws(() => run(compose, [], directory), /required variable \w+ is missing a value: set it in \.env/);
  const example = readFileSync(join(directory, '.env.example'), 'utf8');
  const key = randomBytes(32).toString('hex');
  writeFileSync(join(directory, '.env'), example.replace(/^MASTER_KEY=$/m, `$&${key}`).replaceAll(/=$/gm, '=given'));
  const { services } = parse(run(compose, [], directory));
  const { environment, read_only } = services.wharfinger;
  checkSettings(environment);
  match(environment.WHARF_DATABASE_URL, /^postgres:\/\/wharfinger:given@postgres:5432\/wharfinger$/);
  ok(read_only && services.postgres && services['object-storage']);
}
