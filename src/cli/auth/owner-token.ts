import { CliError, ExitCode } from '../exit-codes.ts';
import type { Terminal } from '../output/terminal.ts';
import { protectData } from '../server/protect-data.ts';

/** Signs a token for the owner whose key the first start of the server saved in the data directory. */
export async function ownerToken(
  data: string,
  terminal: Terminal,
  options: { lifetimeSeconds?: number } = {},
): Promise<string> {
  protectData(data, terminal);
  const { mintOwnerToken, missingOwner, readOwner } = await import('../../identity/owner/owner-key.ts');
  if ((await readOwner(data)) === undefined) {
    throw new CliError(ExitCode.unauthenticated, `${missingOwner(data)}; or log in with 'wharf auth login'`);
  }
  return mintOwnerToken(data, options);
}
