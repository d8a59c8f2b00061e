import texts from './gen/comments.json' with { type: 'json' };

const byName: Readonly<Record<string, string>> = texts;

interface Named {
  readonly typeName: string;
}

/** The comment in the contract on a message, enum or service; empty when there is none. */
export const commentOn = (desc: Named): string => byName[desc.typeName] ?? '';

/** The same for a field, an enum value or a method. */
export const commentOnMember = ({ parent, name }: { readonly parent: Named; readonly name: string }): string =>
  byName[`${parent.typeName}.${name}`] ?? '';

/** The first sentence, without its full stop, and what follows it. */
export function splitSentence(text: string): readonly [first: string, rest: string] {
  const end = /[.!?](?=\s+[A-Z`]|\s*$)/.exec(text.split('\n\n', 1)[0] ?? '');
  if (end === null) return [text, ''];
  return [text.slice(0, end.index), text.slice(end.index + 1).trim()];
}

/** `AccountAssociations` as people write it: `Account associations`. */
export function humanName(pascalCase: string): string {
  const [first = '', ...rest] = pascalCase.split(/(?<=[a-z0-9])(?=[A-Z])/);
  return [first, ...rest.map((word) => word.toLowerCase())].join(' ');
}

/** As Markdown sets it. */
export const code = (text: string): string => `\`${text}\``;
