import type { Command } from 'commander';
import { example } from '../help.ts';
import { addExplain } from './explain.ts';
import { addLogin, addLogout } from './login.ts';
import { addStaticKeys } from './static-key.ts';
import { addStatus } from './status.ts';
import { addToken } from './token.ts';

export function addAuth(program: Command): void {
  const auth = program.command('auth').description('logging in, tokens, and who may do what');
  example(auth, 'wharf auth status');
  addLogin(auth);
  addLogout(auth);
  addToken(auth);
  addStatus(auth);
  addExplain(auth);
  addStaticKeys(auth);
}
