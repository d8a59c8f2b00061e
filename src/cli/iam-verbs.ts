import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { Auth } from '../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { IdentityProviderStatesService } from '../contract/gen/wharfinger/iam/v1/identity_provider_states_pb.js';
import { ServerIdentitiesService } from '../contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import { SessionsService } from '../contract/gen/wharfinger/iam/v1/sessions_pb.js';
import { createApi } from './client/api.ts';
import { addClientOptions, readContext } from './client-options.ts';
import { addExamples } from './help.ts';
import { detailsText } from './output/details.ts';
import { print } from './output/print.ts';

/** Adds the commands of `wharf iam` for methods that are neither list, get, create, update nor delete. */
export function addIamVerbs(area: Command): void {
  const { disableServerIdentity, enableServerIdentity } = ServerIdentitiesService.method;
  const { disableIdentityProvider, enableIdentityProvider } = IdentityProviderStatesService.method;
  addVerb(area, 'server-identities', 'disable', 'end the access of an identity', disableServerIdentity);
  addVerb(area, 'server-identities', 'enable', 'give a disabled identity its access again', enableServerIdentity);
  addVerb(area, 'identity-providers', 'disable', 'end the access of the people of a provider', disableIdentityProvider);
  addVerb(area, 'identity-providers', 'enable', 'enable a disabled identity provider', enableIdentityProvider);
  addEndAll(area);
}

const resourceCommand = (area: Command, name: string): Command => {
  const command = area.commands.find((candidate) => candidate.name() === name);
  if (!command) throw new Error(`there is no command ${area.name()} ${name}`);
  return command;
};

function addVerb(area: Command, resource: string, name: string, description: string, method: DescMethodUnary): void {
  const command = resourceCommand(area, resource).command(name).description(description).argument('<uid>');
  addClientOptions(command);
  addExamples(command, `wharf iam ${resource} ${name} $UID`);
  command.action(async (uid: string) => {
    const context = await readContext(command);
    const response = await createApi(context).call(method, { path: [uid], body: {} });
    print(context, response, () => detailsText(response));
  });
}

function addEndAll(area: Command): void {
  const command = resourceCommand(area, 'sessions')
    .command('end-all')
    .description('end all sessions of an identity, by default of your own')
    .argument('[identity]', 'the uid of the identity');
  addClientOptions(command);
  addExamples(command, 'wharf iam sessions end-all', 'wharf iam sessions end-all $IDENTITY');
  command.action(async (identity: string | undefined) => {
    const context = await readContext(command);
    const api = createApi(context);
    const uid = identity ?? String((await api.call(Auth.method.validate, {})).subject);
    const response = await api.call(SessionsService.method.endSessions, { path: [uid], body: {} });
    print(context, response, () => detailsText(response));
  });
}
