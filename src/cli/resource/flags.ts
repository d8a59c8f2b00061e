import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { ConfigError } from '../../config-values.ts';
import { commentOnMember, splitSentence } from '../../contract/comments.ts';
import { checked } from '../context.ts';
import { misused } from '../exit-codes.ts';
import { readInput } from '../input.ts';
import { setAt } from './body.ts';
import { type Place, protoPath } from './field-paths.ts';
import { type ValueType, valueType } from './values.ts';

/** The first sentence of a comment in the contract, in the tone of the help. */
export function sentenceOf(comment: string): string {
  const [sentence] = splitSentence(comment);
  const plain = sentence.replaceAll('`', "'").replaceAll('\n', ' ');
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}

export const meaningOf = (member: Parameters<typeof commentOnMember>[0]): string => sentenceOf(commentOnMember(member));

const isRepeated = ({ field }: Place): boolean => field.fieldKind === 'list' || field.fieldKind === 'map';

const typeOf = (place: Place, files: readonly string[]): ValueType => {
  const type = valueType(place.field);
  if (!files.includes(protoPath(place))) return type;
  return { placeholder: '<@file>', read: (text, before) => type.read(readInput(text), before) };
};

/** Gives a command a flag for each place, described as the contract does. */
export function addFlags(command: Command, places: readonly Place[], files: readonly string[] = []): void {
  for (const place of places) {
    const { placeholder, choices, read } = typeOf(place, files);
    const notes = [choices, isRepeated(place) && 'repeatable'].filter(Boolean).map((note) => ` (${note})`);
    const meaning = [meaningOf(place.field) || place.field.name.replaceAll('_', ' '), ...notes].join('');
    command.addOption(
      new Option(`--${place.flag} ${placeholder}`, meaning).argParser((text: string, before: JsonValue | undefined) =>
        checked((given) => read(given, before))(text),
      ),
    );
  }
}

/** What was given for each place, in the order of the contract. */
export function givenFlags(command: Command, places: readonly Place[]): [Place, JsonValue][] {
  return places.flatMap((place): [Place, JsonValue][] => {
    const value: unknown = command.getOptionValue(attributeOf(place.flag));
    return value === undefined ? [] : [[place, value as JsonValue]];
  });
}

/** The name that commander keeps the value of a flag under. */
const attributeOf = (flag: string): string => new Option(`--${flag}`).attributeName();

/** Flags that stand for another, deeper in the resource. */
export interface ShortFlags {
  readonly short: Readonly<Record<string, readonly string[]>>;
  readonly files: readonly string[];
  readonly places: readonly Place[];
}

export function addShortFlags(command: Command, { short, files, places }: ShortFlags): void {
  for (const [flag, paths] of Object.entries(short)) {
    const targets = placesAt(places, paths);
    const [first] = targets;
    if (first === undefined) continue;
    const { placeholder } = typeOf(first, files);
    const option = new Option(
      `--${flag} ${placeholder}`,
      `short for ${targets.map((place) => `--${place.flag}`).join(' or ')}`,
    );
    command.addOption(
      option.argParser((text: string, before: string[] = []) => [...before, text]).helpGroup('Short forms:'),
    );
  }
}

const placesAt = (places: readonly Place[], paths: readonly string[]): Place[] =>
  paths.flatMap((path) => places.find((place) => protoPath(place) === path) ?? []);

/**
 * Puts the short flags into a body. Where one stands for a field in several members of a oneof, the member that the body
 * has already decides, then that of the resource as it is now, else the first.
 */
export async function setShortFlags(
  command: Command,
  { short, files, places }: ShortFlags,
  body: JsonObject,
  current: () => Promise<JsonObject>,
): Promise<void> {
  const given = Object.entries(short).flatMap(([flag, paths]) => {
    const texts: string[] | undefined = command.getOptionValue(attributeOf(flag));
    return texts === undefined ? [] : [{ flag, texts, targets: placesAt(places, paths) }];
  });
  // Those with one meaning first: they may settle what the others mean.
  for (const { flag, texts, targets } of given.sort((a, b) => a.targets.length - b.targets.length)) {
    const target =
      targets.length === 1 ? targets[0] : (among(targets, body) ?? among(targets, await current()) ?? targets[0]);
    if (target === undefined) continue;
    if (texts.length > 1 && !isRepeated(target)) throw misused(`--${flag} may be given only once`);
    setAt(body, target.path, readAll(flag, texts, typeOf(target, files)));
  }
}

const among = (targets: readonly Place[], body: JsonObject): Place | undefined =>
  targets.find(({ path: [top] }) => top && (Object.hasOwn(body, top.name) || Object.hasOwn(body, top.jsonName)));

function readAll(flag: string, texts: readonly string[], { read }: ValueType): JsonValue {
  try {
    return texts.reduce<JsonValue | undefined>((before, text) => read(text, before), undefined) ?? '';
  } catch (error) {
    throw error instanceof ConfigError ? misused(`--${flag}: ${error.message}`) : error;
  }
}
