import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { addClientOptions, contextOf } from '../context.ts';
import { example } from '../help.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { plain, visible } from '../output/text.ts';

/** What the server answers, as far as it is printed. */
interface Explanation {
  readonly allowed?: boolean;
  readonly explanation?: string;
  readonly bindings?: readonly { uid?: string; groupUid?: string; roleUid?: string; roleName?: string }[];
  readonly groups?: readonly string[];
  readonly roles?: readonly { uid?: string; name?: string }[];
}

export function addExplain(auth: Command): void {
  const command = auth
    .command('explain')
    .description('say which role binding allows something, or what is missing')
    .argument('<capability>', 'a dotted name, such as groups.list')
    .argument('<uid>', 'a group, or anything in it')
    .option('--identity <uid>', 'whom to ask about, unless yourself');
  addClientOptions(command);
  example(
    command,
    'wharf auth explain groups.create $GROUP',
    'wharf auth explain repos.list $GROUP --identity $IDENTITY',
  );
  command.action(async (capability: string, uid: string, { identity }: { identity?: string }) => {
    const context = await contextOf(command);
    const { createApi } = await import('../client/api.ts');
    const { AccessService } = await import('../../contract/gen/wharfinger/access/v1/access_pb.js');
    const fields = { capability, uid, identity };
    const answer: JsonObject = await createApi(context).call(AccessService.method.explain, { fields });
    print(context, answer, () => explanationText(answer));
  });
}

/** In plain words: the decision, and what it rests on or what would change it. */
function explanationText({
  allowed = false,
  explanation = '',
  bindings = [],
  groups = [],
  roles = [],
}: Explanation): string {
  const parts = [`${allowed ? 'yes' : 'no'}: ${visible(explanation)}\n`];
  if (bindings.length > 0) {
    const rows = bindings.map((binding) => [
      plain(binding.uid) || '(hidden from you)',
      plain(binding.roleName || binding.roleUid),
      plain(binding.groupUid),
    ]);
    parts.push(tableText(['BINDING', 'ROLE', 'GROUP'], rows));
  }
  if (groups.length > 0) {
    const names = roles.map(({ name }) => plain(name)).join(', ');
    const places = groups.map((uid) => `  ${plain(uid)}\n`).join('');
    parts.push(
      `a role binding${names && ` with one of these roles: ${names}`}\nin one of these groups would allow it:\n${places}`,
    );
  }
  return parts.join('\n');
}
