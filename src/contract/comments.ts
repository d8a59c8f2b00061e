import comments from './gen/comments.json' with { type: 'json' };

const commentsByName: Readonly<Record<string, string>> = comments;

interface NamedElement {
  readonly typeName: string;
}

/** The comment on a message, enum or service in the contract; empty when there is none. */
export const commentOn = (desc: NamedElement): string => commentsByName[desc.typeName] ?? '';

/** The comment on a field, an enum value or a method in the contract; empty when there is none. */
export const commentOnMember = ({ parent, name }: { readonly parent: NamedElement; readonly name: string }): string =>
  commentsByName[`${parent.typeName}.${name}`] ?? '';

/** Splits a text into its first sentence, without the full stop, and the rest. */
export function splitSentence(text: string): readonly [first: string, rest: string] {
  const end = /[.!?](?=\s+[A-Z`]|\s*$)/.exec(text.split('\n\n', 1)[0] ?? '');
  if (end === null) return [text, ''];
  return [text.slice(0, end.index), text.slice(end.index + 1).trim()];
}

/** `Account associations` for `AccountAssociations`. */
export function humanName(pascalCase: string): string {
  const [first = '', ...rest] = pascalCase.split(/(?<=[a-z0-9])(?=[A-Z])/);
  return [first, ...rest.map((word) => word.toLowerCase())].join(' ');
}

/** Markdown for inline code. */
export const inlineCode = (text: string): string => `\`${text}\``;
