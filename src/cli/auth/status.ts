import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { addClientOptions, readContext } from '../client-options.ts';
import type { ClientContext } from '../context.ts';
import { addExamples } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { columnsOf } from '../resource/columns.ts';

export function addStatus(auth: Command): void {
  const command = addClientOptions(auth.command('status').description('show your identity and your roles at a server'));
  addExamples(command, 'wharf auth status', 'wharf auth status --token $TOKEN -o json');
  command.action(async () => showStatus(await readContext(command)));
}

/** Prints the identity and the roles of a token, as the server sees them. */
export async function showStatus(context: ClientContext): Promise<void> {
  // Loaded here so that `wharf auth token` starts without loading the contract.
  const { createApi } = await import('../client/api.ts');
  const { Auth } = await import('../../contract/gen/platform/auth/v1/auth.platform_pb.js');
  const whoAmI = await createApi(context).call(Auth.method.validate);
  print(context, whoAmI, () => statusText(context, whoAmI));
}

const { header, cells } = columnsOf({ GROUP: 'group.id', NAME: 'group.name', ROLE: ['role.name', 'role.id'] });

function statusText({ server, terminal }: ClientContext, whoAmI: JsonObject): string {
  const { subject = '', issuer = '', audience = [], expiry = '', email, capabilities = [] } = whoAmI;
  const details: JsonObject = { server, identity: subject, issuer, audience, expires: expiry, ...(email && { email }) };
  const bindings = capabilities as JsonObject[];
  const roles = bindings.length > 0 ? tableText(header, bindings.map(cells), terminal.width) : 'no role in any group\n';
  return `${detailsText(details)}\n${roles}`;
}
