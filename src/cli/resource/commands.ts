import type { DescField, DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parentOf } from '../../base/uid.ts';
import { commentOn } from '../../contract/comments.ts';
import { isRequired } from '../../contract/field-behavior.ts';
import { presentPaths } from '../../contract/json/present-paths.ts';
import type { Method, Route } from '../../contract/method.ts';
import { type Api, createApi, rowOf } from '../client/api.ts';
import { addClientOptions, type Context, contextOf } from '../context.ts';
import { misused } from '../exit-codes.ts';
import { example } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { readBody, setAt } from './body.ts';
import { columnsOf } from './columns.ts';
import { type Place, protoPath, queryPlaces, resourcePlaces, variablesOf } from './field-paths.ts';
import { addFlags, addShortFlags, givenFlags, meaningOf, sentenceOf, setShortFlags } from './flags.ts';
import { listAll } from './list.ts';
import { listKey, methodOf, type ResourceSpec, type VerbName, verbs } from './spec.ts';

/** A verb of a resource in the making. */
interface Verb {
  readonly spec: ResourceSpec;
  readonly command: Command;
  readonly method: DescMethod;
  readonly row: Method & { readonly route: Route };
  /** What the request carries beside path and body. */
  readonly query: readonly Place[];
  readonly examples: (...given: readonly string[]) => void;
}

/** Adds the commands of a resource: whatever of list, get, create, update and delete the contract has. */
export function addResource(area: Command, spec: ResourceSpec): void {
  const [service] = spec.resource.file.services;
  const parent = area.command(spec.name).description(service ? sentenceOf(commentOn(service)) : spec.name);
  example(parent, `wharf ${area.name()} ${spec.name} list`);
  for (const verb of verbs) addVerb(parent, verb, spec);
}

/** Adds one verb of a resource, where the contract has it; under another name, if need be. */
export function addVerb(parent: Command, verb: VerbName, spec: ResourceSpec, name: string = verb): void {
  const method = methodOf(spec, verb);
  if (method === undefined) return;
  const command = parent.command(name).description(meaningOf(method));
  const row = rowOf(method);
  const examples = (...given: readonly string[]) =>
    void example(command, ...given.map((rest) => `${lineOf(command)} ${rest}`.trimEnd()));
  builders[verb]({ spec, command, method, row, query: queryPlaces(row, row.route), examples });
  addClientOptions(command);
}

/** `wharf iam groups list`: how a command is written. */
const lineOf = (command: Command): string =>
  command.parent ? `${lineOf(command.parent)} ${command.name()}` : command.name();

const builders: Readonly<Record<VerbName, (verb: Verb) => void>> = {
  list: buildList,
  get: buildGet,
  create: buildCreate,
  update: buildUpdate,
  delete: buildDelete,
};

function buildList({ spec, command, method, row, query, examples }: Verb): void {
  addArguments(command, row);
  addFlags(command, query);
  command.addOption(new Option('--limit <n>', 'stop after so many').argParser(count));
  command.addHelpText(
    'after',
    '\nAll pages are followed. Without --limit, --page-size and --page-token ask for a single page.',
  );
  const plain = command.registeredArguments.length === 0 ? [''] : [];
  examples(...plain, spec.examples?.list ?? '--descendants-of $GROUP --order-by name -o json');

  const key = listKey(method.output, spec.resource) ?? '';
  command.action(async () => {
    const context = await contextOf(command);
    const api = createApi(context);
    const path = command.args;
    const fields = { ...spec.defaults, ...queryOf(command, query) };
    const { limit } = command.opts<{ limit?: number }>();
    const isOnePage = limit === undefined && (fields.page_size !== undefined || fields.page_token !== undefined);
    const answer = isOnePage
      ? await api.call(method, { path, fields })
      : await listAll(api, {
          method,
          key,
          path,
          fields,
          limit: limit ?? Number.POSITIVE_INFINITY,
          ...progress(context),
        });
    showList(context, spec, answer, (answer[key] ?? []) as JsonObject[]);
  });
}

function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('write a whole number from 1');
  return Number(text);
}

const CLEAR_LINE = '\x1b[K';

/** A line that is written over, for people who wait. */
const progress = ({ terminal }: Context) => ({
  onPage(found: number, total: string): void {
    if (terminal.isWatched) terminal.err(`${found}${total && ` of ${total}`}…${CLEAR_LINE}\r`);
  },
});

function showList(context: Context, { columns }: ResourceSpec, answer: JsonObject, items: JsonObject[]): void {
  const { output, terminal } = context;
  const { header, cells } = columnsOf(columns);
  if (terminal.isWatched) terminal.err(CLEAR_LINE);
  print(context, answer, () => tableText(header, items.map(cells), terminal.width));
  if (output === 'table' && answer.nextPageToken) {
    terminal.err(`there is more: --page-token ${answer.nextPageToken}\n`);
  }
}

function buildGet({ spec, command, method, row, query, examples }: Verb): void {
  addArguments(command, row);
  addFlags(command, query);
  examples(spec.examples?.get ?? '$UID');
  command.action(async () => {
    const context = await contextOf(command);
    show(context, await createApi(context).call(method, { path: command.args, fields: queryOf(command, query) }));
  });
}

function buildDelete({ command, method, row, query, examples }: Verb): void {
  addArguments(command, row);
  addFlags(command, query);
  examples('$UID');
  command.action(async () => {
    const context = await contextOf(command);
    await createApi(context).call(method, { path: command.args, fields: queryOf(command, query) });
    // The API answers a deletion with nothing, so there is nothing to print as JSON either.
    if (context.output === 'table') context.terminal.out(`deleted ${command.args.join(' ')}\n`);
  });
}

function buildCreate({ spec, command, method, row, query, examples }: Verb): void {
  const variables = variablesOf(row.route.template).map((name) => {
    const field = fieldNamed(row, name);
    const option = new Option(`--${kebab(name)} <uid>`, meaningOf(field)).argParser(notEmpty);
    command.addOption(option.makeOptionMandatory(isRequired(field)));
    return option.attributeName();
  });
  const { read } = addBodyFlags(command, spec, resourcePlaces(spec.resource, false));
  addFlags(command, query);
  examples(spec.examples?.create ?? '--parent $GROUP --name my-name', '--parent $GROUP --file body.json');
  command.action(async () => {
    const context = await contextOf(command);
    const api = createApi(context);
    const path = variables.map((name): string => command.getOptionValue(name) ?? '');
    const body = await read(async () => ({}));
    await spec.complete?.(body, { api, group: path[0] ?? '' });
    const told: Record<string, string> = {};
    const hear = (headers: Headers) => {
      const value = spec.beside && headers.get(spec.beside.header);
      if (spec.beside && value) told[spec.beside.name] = value;
    };
    const answer = await api.call(method, { path, body, fields: queryOf(command, query), hear });
    show(context, { ...answer, ...told });
  });
}

function buildUpdate({ spec, command, method, row, query, examples }: Verb): void {
  addArguments(command, row);
  const { read } = addBodyFlags(command, spec, resourcePlaces(spec.resource, true));
  addFlags(command, query);
  command.addHelpText('after', '\nOnly what is given changes. An empty value clears: --description "".');
  examples(spec.examples?.update ?? '$UID --name new-name');
  command.action(async () => {
    const context = await contextOf(command);
    const api = createApi(context);
    const [uid = ''] = command.args;
    const body = await read(() => currentOf(api, spec, uid));
    const paths = presentPaths(spec.resource, body);
    if (paths.length === 0) throw misused('nothing to change: give at least one field');
    await spec.complete?.(body, { api, group: parentOf(uid) });
    const fields = { ...queryOf(command, query), update_mask: paths.join(',') };
    show(context, await api.call(method, { path: command.args, body, fields }));
  });
}

async function currentOf(api: Api, spec: ResourceSpec, uid: string): Promise<JsonObject> {
  const method = methodOf(spec, 'get');
  return method ? api.call(method, { path: [uid] }) : {};
}

/** The flags that make up a body, and how they are put together: a file, then what the flags say. */
function addBodyFlags(command: Command, spec: ResourceSpec, places: readonly Place[]) {
  const { short = {}, files = [] } = spec;
  command.option('--file <path>', 'a JSON file with the whole body, or - for standard input; flags win over it');
  const shortFlags = { short, files, places };
  addShortFlags(command, shortFlags);
  addFlags(command, places, files);
  return {
    async read(current: () => Promise<JsonObject>): Promise<JsonObject> {
      const { file } = command.opts<{ file?: string }>();
      const body = file === undefined ? {} : readBody(file);
      for (const [{ path }, value] of givenFlags(command, places)) setAt(body, path, value);
      await setShortFlags(command, shortFlags, body, current);
      return body;
    },
  };
}

function addArguments(command: Command, { route }: Verb['row']): void {
  for (const name of variablesOf(route.template)) command.argument(`<${kebab(name)}>`, '', notEmpty);
}

/** `uid` for `group.uid`. */
const kebab = (variable: string): string => (variable.split('.').at(-1) ?? variable).replaceAll('_', '-');

function notEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('it is empty');
  return text;
}

function fieldNamed({ desc }: Method, name: string): DescField {
  const field = desc.input.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${desc.name} has no field ${name}`);
  return field;
}

/** A filter that is empty would be none, and a script whose variable is unset would get everything. */
export function queryOf(command: Command, places: readonly Place[]): Record<string, JsonValue> {
  const given = givenFlags(command, places);
  const empty = given.find(([, value]) => value === '' || (Array.isArray(value) && value.length === 0));
  if (empty) throw misused(`--${empty[0].flag} is empty; leave it out for none`);
  return Object.fromEntries(given.map(([place, value]) => [protoPath(place), value]));
}

const show = (context: Context, answer: JsonObject): void => print(context, answer, () => detailsText(answer));
