import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { ConfigError } from '../../config-values.ts';
import { commentOnMember, splitSentence } from '../../contract/comments.ts';
import { usageError } from '../exit-codes.ts';
import { optionParser, readOptionValue } from '../option-value.ts';
import { type FieldPath, protoPath } from './field-paths.ts';
import { setField } from './request-body.ts';
import { type ValueType, valueType } from './value-types.ts';

/** The first sentence of a comment in the contract, formatted for the help. */
export function firstSentence(comment: string): string {
  const [sentence] = splitSentence(comment);
  const plain = sentence.replaceAll('`', "'").replaceAll('\n', ' ');
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}

export const descriptionOf = (member: Parameters<typeof commentOnMember>[0]): string =>
  firstSentence(commentOnMember(member));

const isRepeated = ({ field }: FieldPath): boolean => field.fieldKind === 'list' || field.fieldKind === 'map';

const typeOf = (fieldPath: FieldPath, files: readonly string[]): ValueType => {
  const type = valueType(fieldPath.field);
  if (!files.includes(protoPath(fieldPath))) return type;
  return { placeholder: '<@file>', parse: (text, previous) => type.parse(readOptionValue(text), previous) };
};

/** Adds a flag for each field, with the description of the contract. */
export function addFlags(command: Command, fieldPaths: readonly FieldPath[], files: readonly string[] = []): void {
  for (const fieldPath of fieldPaths) {
    const { flag, field } = fieldPath;
    const { placeholder, choices, parse } = typeOf(fieldPath, files);
    const notes = [choices, isRepeated(fieldPath) && 'repeatable'].filter(Boolean).map((note) => ` (${note})`);
    const description = [descriptionOf(field) || field.name.replaceAll('_', ' '), ...notes].join('');
    command.addOption(
      new Option(`--${flag} ${placeholder}`, description).argParser((text: string, previous: JsonValue | undefined) =>
        optionParser((value) => parse(value, previous))(text),
      ),
    );
  }
}

/** Returns the values of the given flags, in the order of the contract. */
export function readFlags(command: Command, fieldPaths: readonly FieldPath[]): [FieldPath, JsonValue][] {
  return fieldPaths.flatMap((fieldPath): [FieldPath, JsonValue][] => {
    const value: unknown = command.getOptionValue(attributeOf(fieldPath.flag));
    return value === undefined ? [] : [[fieldPath, value as JsonValue]];
  });
}

/** The name that commander stores the value of a flag under. */
const attributeOf = (flag: string): string => new Option(`--${flag}`).attributeName();

/** Flags that set a nested field without its dotted name. */
export interface ShortFlags {
  readonly short: Readonly<Record<string, readonly string[]>>;
  readonly files: readonly string[];
  readonly fieldPaths: readonly FieldPath[];
}

export function addShortFlags(command: Command, { short, files, fieldPaths }: ShortFlags): void {
  for (const [flag, paths] of Object.entries(short)) {
    const targets = fieldPathsAt(fieldPaths, paths);
    const [first] = targets;
    if (first === undefined) continue;
    const { placeholder } = typeOf(first, files);
    const option = new Option(
      `--${flag} ${placeholder}`,
      `short for ${targets.map((target) => `--${target.flag}`).join(' or ')}`,
    );
    command.addOption(
      option.argParser((text: string, previous: string[] = []) => [...previous, text]).helpGroup('Short forms:'),
    );
  }
}

const fieldPathsAt = (fieldPaths: readonly FieldPath[], paths: readonly string[]): FieldPath[] =>
  paths.flatMap((path) => fieldPaths.find((fieldPath) => protoPath(fieldPath) === path) ?? []);

/**
 * Sets the values of the short flags in a body. If a short flag can set several members of a oneof, it sets:
 * 1. the member that the body has already,
 * 2. else the member that the resource has now,
 * 3. else the first.
 */
export async function applyShortFlags(
  command: Command,
  { short, files, fieldPaths }: ShortFlags,
  body: JsonObject,
  current: () => Promise<JsonObject>,
): Promise<void> {
  const usedFlags = Object.entries(short).flatMap(([flag, paths]) => {
    const texts: string[] | undefined = command.getOptionValue(attributeOf(flag));
    return texts === undefined ? [] : [{ flag, texts, targets: fieldPathsAt(fieldPaths, paths) }];
  });
  // Unambiguous flags first: they can decide the member for the others.
  for (const { flag, texts, targets } of usedFlags.sort((a, b) => a.targets.length - b.targets.length)) {
    const target =
      targets.length === 1
        ? targets[0]
        : (findPresent(targets, body) ?? findPresent(targets, await current()) ?? targets[0]);
    if (target === undefined) continue;
    if (texts.length > 1 && !isRepeated(target)) throw usageError(`--${flag} may be given only once`);
    setField(body, target.path, parseAll(flag, texts, typeOf(target, files)));
  }
}

const findPresent = (targets: readonly FieldPath[], body: JsonObject): FieldPath | undefined =>
  targets.find(({ path: [top] }) => top && (Object.hasOwn(body, top.name) || Object.hasOwn(body, top.jsonName)));

function parseAll(flag: string, texts: readonly string[], { parse }: ValueType): JsonValue {
  try {
    return texts.reduce<JsonValue | undefined>((previous, text) => parse(text, previous), undefined) ?? '';
  } catch (error) {
    throw error instanceof ConfigError ? usageError(`--${flag}: ${error.message}`) : error;
  }
}
