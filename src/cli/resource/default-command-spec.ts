import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { isInputOnly, isOutputOnly, isRequired } from '../../contract/field-behavior.ts';
import { files } from '../../contract/method-table.ts';
import { type CommandSpec, methodOf } from './command-spec.ts';

/** How many fields besides uid and create time a list shows. */
const MAX_COLUMNS = 4;

/** Describes the commands of a resource from the contract alone. */
export function defaultCommandSpec(typeName: string): CommandSpec {
  const resource = files.flatMap((file) => file.messages).find((message) => message.typeName === typeName);
  if (!resource) throw new Error(`contract: there is no message ${typeName}`);
  const examples = { list: '-o json', create: exampleFor(resource) };
  const spec = { name: '', resource, columns: columnsFor(resource), examples };
  const list = methodOf(spec, 'list');
  return { ...spec, name: kebabCase(list?.name.replace(/^List/, '') ?? resource.name) };
}

function columnsFor({ fields }: DescMessage): CommandSpec['columns'] {
  const shown = fields.filter((field) => isShort(field) && !isInputOnly(field) && !isStandard(field));
  const columns = shown.slice(0, MAX_COLUMNS).map((field) => [headerOf(field), field.jsonName] as const);
  const has = (name: string): boolean => fields.some((field) => field.name === name);
  return {
    ...(has('uid') && { UID: 'uid' }),
    ...Object.fromEntries(columns),
    ...(has('create_time') && { CREATED: 'createTime' }),
  };
}

/** The arguments of an example of create: the parent and the required fields. */
const exampleFor = ({ fields }: DescMessage): string =>
  [
    '--parent $GROUP',
    ...fields
      .filter((field) => isRequired(field) && !isOutputOnly(field))
      .map((field) => `--${field.name.replaceAll('_', '-')} ${exampleValue(field)}`),
  ].join(' ');

function exampleValue({ name, message, scalar }: DescField): string {
  if (message?.typeName === TimestampSchema.typeName) return '2030-01-31T12:00:00Z';
  if (message?.typeName === DurationSchema.typeName) return '2h';
  return scalar === ScalarType.STRING && name === 'name' ? 'my-name' : `$${name.toUpperCase()}`;
}

const SHORT_MESSAGES: readonly string[] = [TimestampSchema.typeName, DurationSchema.typeName];

/** Whether the value of a field fits into a cell of a table. */
function isShort({ fieldKind, scalar, message }: DescField): boolean {
  if (fieldKind === 'message') return SHORT_MESSAGES.includes(message.typeName);
  return fieldKind === 'enum' || (fieldKind === 'scalar' && scalar !== ScalarType.BYTES);
}

const isStandard = ({ name }: DescField): boolean => ['uid', 'create_time', 'update_time'].includes(name);

const headerOf = ({ name }: DescField): string => name.replaceAll('_', ' ').toUpperCase();

const kebabCase = (pascalCase: string): string => pascalCase.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase();
