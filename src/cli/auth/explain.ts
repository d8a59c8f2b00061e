import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { escapeForTerminal, formatValue } from '../output/text.ts';

/** The printed fields of the response. */
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
    .description('show which role binding grants a capability, or which one is missing')
    .argument('<capability>', 'the name of a capability, such as groups.list')
    .argument('<uid>', 'a group, or a resource in a group')
    .option('--identity <uid>', 'the identity to check (default: yours)');
  addClientOptions(command);
  addExamples(
    command,
    'wharf auth explain groups.create $GROUP',
    'wharf auth explain repos.list $GROUP --identity $IDENTITY',
  );
  command.action(async (capability: string, uid: string, { identity }: { identity?: string }) => {
    const context = await readContext(command);
    const { createApi } = await import('../client/api.ts');
    const { AccessService } = await import('../../contract/gen/wharfinger/access/v1/access_pb.js');
    const fields = { capability, uid, identity };
    const response: JsonObject = await createApi(context).call(AccessService.method.explain, { fields });
    print(context, response, () => explanationText(response));
  });
}

/** The decision, and the role bindings that allow it or that would allow it. */
function explanationText({
  allowed = false,
  explanation = '',
  bindings = [],
  groups = [],
  roles = [],
}: Explanation): string {
  const parts = [`${allowed ? 'yes' : 'no'}: ${escapeForTerminal(explanation)}\n`];
  if (bindings.length > 0) {
    const rows = bindings.map((binding) => [
      formatValue(binding.uid) || '(hidden from you)',
      formatValue(binding.roleName || binding.roleUid),
      formatValue(binding.groupUid),
    ]);
    parts.push(tableText(['BINDING', 'ROLE', 'GROUP'], rows));
  }
  if (groups.length > 0) {
    const names = roles.map(({ name }) => formatValue(name)).join(', ');
    const groupLines = groups.map((uid) => `  ${formatValue(uid)}\n`).join('');
    parts.push(
      `A role binding${names && ` with one of these roles: ${names}`}\nin one of these groups would allow it:\n${groupLines}`,
    );
  }
  return parts.join('\n');
}
