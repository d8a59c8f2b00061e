import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { addClientOptions, type Context, contextOf } from '../context.ts';
import { example } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { columnsOf } from '../resource/columns.ts';

export function addStatus(auth: Command): void {
  const command = addClientOptions(auth.command('status').description('show who you are to a server, and your roles'));
  example(command, 'wharf auth status', 'wharf auth status --token $TOKEN -o json');
  command.action(async () => showStatus(await contextOf(command)));
}

/** Prints whom a token speaks for, as the server sees it. */
export async function showStatus(context: Context): Promise<void> {
  // Loaded here, so that printing a token does not wait for the contract.
  const { createApi } = await import('../client/api.ts');
  const { Auth } = await import('../../contract/gen/platform/auth/v1/auth.platform_pb.js');
  const whoAmI = await createApi(context).call(Auth.method.validate);
  print(context, whoAmI, () => statusText(context, whoAmI));
}

const { header, cells } = columnsOf({ GROUP: 'group.id', NAME: 'group.name', ROLE: ['role.name', 'role.id'] });

function statusText({ server, terminal }: Context, whoAmI: JsonObject): string {
  const { subject = '', issuer = '', audience = [], expiry = '', email, capabilities = [] } = whoAmI;
  const facts: JsonObject = { server, identity: subject, issuer, audience, expires: expiry, ...(email && { email }) };
  const held = capabilities as JsonObject[];
  const roles = held.length > 0 ? tableText(header, held.map(cells), terminal.width) : 'no role in any group\n';
  return `${detailsText(facts)}\n${roles}`;
}
