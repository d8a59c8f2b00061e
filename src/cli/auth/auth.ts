import type { Command } from 'commander';
import { addExamples } from '../help.ts';
import { addExplain } from './explain.ts';
import { addLogin, addLogout } from './login.ts';
import { addStaticKeys } from './static-key.ts';
import { addStatus } from './status.ts';
import { addToken } from './token.ts';

export function addAuth(program: Command): void {
  const auth = program.command('auth').description('log in, manage tokens and explain permissions');
  addExamples(auth, 'wharf auth status');
  addLogin(auth);
  addLogout(auth);
  addToken(auth);
  addStatus(auth);
  addExplain(auth);
  addStaticKeys(auth);
}
