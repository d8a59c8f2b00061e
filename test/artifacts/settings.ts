import { equal } from 'node:assert/strict';
import { loadConfig } from '../../src/config.ts';
import { unknownVariable } from '../../src/known-variables.ts';

/** Fails if a variable that begins with WHARF_ is not a setting of the server: it would not start. */
export function checkVariables(names: Iterable<string>): void {
  for (const name of names) equal(unknownVariable({ [name]: '1' }), undefined);
}

/** Fails if the server would not start with these variables, because of a name or a value. */
export function checkSettings(env: Record<string, string>): void {
  checkVariables(Object.keys(env));
  loadConfig({}, env);
}
