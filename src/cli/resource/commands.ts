import type { DescField, DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parentOf } from '../../base/uid.ts';
import { commentOn } from '../../contract/comments.ts';
import { isRequired } from '../../contract/field-behavior.ts';
import { presentPaths } from '../../contract/json/present-paths.ts';
import { type Api, createApi, type RoutedMethod, routedMethod } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import type { ClientContext } from '../context.ts';
import { usageError } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { columnsOf } from './columns.ts';
import { type CommandSpec, listKey, methodOf, type VerbName, verbs } from './command-spec.ts';
import { type FieldPath, protoPath, queryFieldPaths, resourceFieldPaths, routeVariables } from './field-paths.ts';
import { addFlags, addShortFlags, applyShortFlags, descriptionOf, firstSentence, readFlags } from './flags.ts';
import { listAll } from './list-all.ts';
import { readBodyFile, setField } from './request-body.ts';

/** Everything that is needed to build the command of a verb. */
interface Verb {
  readonly spec: CommandSpec;
  readonly command: Command;
  readonly method: DescMethod;
  readonly routed: RoutedMethod;
  /** The fields of the request that are not in its path or body. */
  readonly query: readonly FieldPath[];
  readonly addVerbExamples: (...argumentLists: readonly string[]) => void;
}

/** Adds the commands of a resource: those of list, get, create, update and delete that the contract has. */
export function addResource(area: Command, spec: CommandSpec): void {
  const [service] = spec.resource.file.services;
  const parent = area.command(spec.name).description(service ? firstSentence(commentOn(service)) : spec.name);
  addExamples(parent, `wharf ${area.name()} ${spec.name} list`);
  for (const verb of verbs) addVerb(parent, verb, spec);
}

/** Adds the command of one verb, if the contract has it. `name` is the name of the command. */
export function addVerb(parent: Command, verb: VerbName, spec: CommandSpec, name: string = verb): void {
  const method = methodOf(spec, verb);
  if (method === undefined) return;
  const command = parent.command(name).description(descriptionOf(method));
  const routed = routedMethod(method);
  const addVerbExamples = (...argumentLists: readonly string[]) =>
    void addExamples(command, ...argumentLists.map((list) => `${commandPath(command)} ${list}`.trimEnd()));
  builders[verb]({ spec, command, method, routed, query: queryFieldPaths(routed, routed.route), addVerbExamples });
  addClientOptions(command);
}

/** The full command, such as `wharf iam groups list`. */
const commandPath = (command: Command): string =>
  command.parent ? `${commandPath(command.parent)} ${command.name()}` : command.name();

const builders: Readonly<Record<VerbName, (verb: Verb) => void>> = {
  list: buildList,
  get: buildGet,
  create: buildCreate,
  update: buildUpdate,
  delete: buildDelete,
};

function buildList({ spec, command, method, routed, query, addVerbExamples }: Verb): void {
  addArguments(command, routed);
  addFlags(command, query);
  command.addOption(new Option('--limit <n>', 'stop after this many results').argParser(parseCount));
  command.addHelpText(
    'after',
    '\nThe command reads all pages. With --page-size or --page-token and without --limit, it reads one page.',
  );
  const withoutArguments = command.registeredArguments.length === 0 ? [''] : [];
  addVerbExamples(...withoutArguments, spec.examples?.list ?? '--descendants-of $GROUP --order-by name -o json');

  const key = listKey(method.output, spec.resource) ?? '';
  command.action(async () => {
    const context = await readContext(command);
    const api = createApi(context);
    const path = command.args;
    const fields = { ...spec.defaults, ...queryOf(command, query) };
    const { limit } = command.opts<{ limit?: number }>();
    const isOnePage = limit === undefined && (fields.page_size !== undefined || fields.page_token !== undefined);
    const list = isOnePage
      ? await api.call(method, { path, fields })
      : await listAll(api, {
          method,
          key,
          path,
          fields,
          limit: limit ?? Number.POSITIVE_INFINITY,
          ...progress(context),
        });
    printList(context, spec, list, (list[key] ?? []) as JsonObject[]);
  });
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('write a whole number of at least 1');
  return Number(text);
}

const CLEAR_LINE = '\x1b[K';

/** Shows the progress in one line of a terminal. */
const progress = ({ terminal }: ClientContext) => ({
  onPage(count: number, total: string): void {
    if (terminal.isInteractive) terminal.err(`${count}${total && ` of ${total}`}…${CLEAR_LINE}\r`);
  },
});

function printList(context: ClientContext, { columns }: CommandSpec, list: JsonObject, items: JsonObject[]): void {
  const { output, terminal } = context;
  const { header, cells } = columnsOf(columns);
  if (terminal.isInteractive) terminal.err(CLEAR_LINE);
  print(context, list, () => tableText(header, items.map(cells), terminal.width));
  if (output === 'table' && list.nextPageToken) {
    terminal.err(`more results: --page-token ${list.nextPageToken}\n`);
  }
}

function buildGet({ spec, command, method, routed, query, addVerbExamples }: Verb): void {
  addArguments(command, routed);
  addFlags(command, query);
  addVerbExamples(spec.examples?.get ?? '$ID');
  command.action(async () => {
    const context = await readContext(command);
    printDetails(
      context,
      await createApi(context).call(method, { path: command.args, fields: queryOf(command, query) }),
    );
  });
}

function buildDelete({ command, method, routed, query, addVerbExamples }: Verb): void {
  addArguments(command, routed);
  addFlags(command, query);
  addVerbExamples('$ID');
  command.action(async () => {
    const context = await readContext(command);
    await createApi(context).call(method, { path: command.args, fields: queryOf(command, query) });
    // The API returns nothing for a deletion, so JSON output is empty.
    if (context.output === 'table') context.terminal.out(`deleted ${command.args.join(' ')}\n`);
  });
}

function buildCreate({ spec, command, method, routed, query, addVerbExamples }: Verb): void {
  const variables = routeVariables(routed.route.template).map((name) => {
    const field = fieldNamed(routed, name);
    const option = new Option(`--${kebab(name)} <uid>`, descriptionOf(field)).argParser(rejectEmpty);
    command.addOption(option.makeOptionMandatory(isRequired(field)));
    return option.attributeName();
  });
  const { readBody } = addBodyFlags(command, spec, resourceFieldPaths(spec.resource, false));
  addFlags(command, query);
  addVerbExamples(spec.examples?.create ?? '--parent $GROUP --name my-name', '--parent $GROUP --file body.json');
  command.action(async () => {
    const context = await readContext(command);
    const api = createApi(context);
    const path = variables.map((name): string => command.getOptionValue(name) ?? '');
    const body = await readBody(async () => ({}));
    await spec.complete?.(body, { api, group: path[0] ?? '' });
    const { responseHeader } = spec;
    const fromHeader: Record<string, string> = {};
    const onHeaders = (headers: Headers) => {
      const value = responseHeader && headers.get(responseHeader.header);
      if (responseHeader && value) fromHeader[responseHeader.name] = value;
    };
    const created = await api.call(method, { path, body, fields: queryOf(command, query), onHeaders });
    printDetails(context, { ...created, ...fromHeader });
  });
}

function buildUpdate({ spec, command, method, routed, query, addVerbExamples }: Verb): void {
  addArguments(command, routed);
  const { readBody } = addBodyFlags(command, spec, resourceFieldPaths(spec.resource, true));
  addFlags(command, query);
  command.addHelpText('after', '\nOnly the given fields change. An empty value clears a field: --description "".');
  addVerbExamples(spec.examples?.update ?? '$ID --name new-name');
  command.action(async () => {
    const context = await readContext(command);
    const api = createApi(context);
    const [uid = ''] = command.args;
    const body = await readBody(() => fetchCurrent(api, spec, uid));
    const paths = presentPaths(spec.resource, body);
    if (paths.length === 0) throw usageError('nothing to change: give at least one field');
    await spec.complete?.(body, { api, group: parentOf(uid) });
    const fields = { ...queryOf(command, query), update_mask: paths.join(',') };
    printDetails(context, await api.call(method, { path: command.args, body, fields }));
  });
}

async function fetchCurrent(api: Api, spec: CommandSpec, uid: string): Promise<JsonObject> {
  const method = methodOf(spec, 'get');
  return method ? api.call(method, { path: [uid] }) : {};
}

/** Adds the flags for the request body and returns a function that builds it. Flags override --file. */
function addBodyFlags(command: Command, spec: CommandSpec, fieldPaths: readonly FieldPath[]) {
  const { short = {}, files = [] } = spec;
  command.option(
    '--file <path>',
    'a JSON file with the request body, or - for standard input; flags override its values',
  );
  const shortFlags = { short, files, fieldPaths };
  addShortFlags(command, shortFlags);
  addFlags(command, fieldPaths, files);
  return {
    async readBody(current: () => Promise<JsonObject>): Promise<JsonObject> {
      const { file } = command.opts<{ file?: string }>();
      const body = file === undefined ? {} : readBodyFile(file);
      for (const [{ path }, value] of readFlags(command, fieldPaths)) setField(body, path, value);
      await applyShortFlags(command, shortFlags, body, current);
      return body;
    },
  };
}

function addArguments(command: Command, { route }: RoutedMethod): void {
  for (const name of routeVariables(route.template)) command.argument(`<${kebab(name)}>`, '', rejectEmpty);
}

/** The flag name of a route variable: `uid` for `group.uid`. */
const kebab = (variable: string): string => (variable.split('.').at(-1) ?? variable).replaceAll('_', '-');

function rejectEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('it is empty');
  return text;
}

function fieldNamed({ desc }: RoutedMethod, name: string): DescField {
  const field = desc.input.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${desc.name} has no field ${name}`);
  return field;
}

/** Refuses empty filters: a script whose variable is unset would otherwise list everything. */
export function queryOf(command: Command, fieldPaths: readonly FieldPath[]): Record<string, JsonValue> {
  const flags = readFlags(command, fieldPaths);
  const empty = flags.find(([, value]) => value === '' || (Array.isArray(value) && value.length === 0));
  if (empty) throw usageError(`--${empty[0].flag} is empty: omit the flag, or give it a value`);
  return Object.fromEntries(flags.map(([fieldPath, value]) => [protoPath(fieldPath), value]));
}

const printDetails = (context: ClientContext, resource: JsonObject): void =>
  print(context, resource, () => detailsText(resource));
