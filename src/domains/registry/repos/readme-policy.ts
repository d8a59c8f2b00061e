import type { DefaultTreeAdapterTypes } from 'parse5';
import { lazyPackage } from '../../../base/lazy-package.ts';

const markdownIt = lazyPackage<typeof import('markdown-it').default>('markdown-it');
const parse5 = lazyPackage<typeof import('parse5')>('parse5');

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

/** Rendering takes time in proportion; nobody reads more. */
export const MAX_README = 128 * 1024;

/** As a browser would see it, with raw HTML and every link as it stands, so that the policy judges both. */
function rendered(text: string): string {
  const markdown = new (markdownIt())({ html: true, linkify: false });
  markdown.validateLink = () => true;
  return markdown.render(text);
}

/** Text, structure and pictures; nothing that runs, fetches by itself, asks for input or changes the page around it. */
const ELEMENTS: ReadonlySet<string> = new Set(
  (
    'a abbr acronym article aside b bdi bdo blockquote br caption center cite code col colgroup dd del details dfn div ' +
    'dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hgroup hr i img ins kbd li mark ol p pre q rp rt ruby s samp ' +
    'section small span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr'
  ).split(' '),
);

const EVERYWHERE = ['align', 'dir', 'id', 'lang', 'title'];
const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  a: ['href', 'name', 'rel'],
  blockquote: ['cite'],
  code: ['class'],
  col: ['span', 'width'],
  colgroup: ['span', 'width'],
  del: ['cite', 'datetime'],
  details: ['open'],
  img: ['alt', 'height', 'src', 'width'],
  ins: ['cite', 'datetime'],
  li: ['value'],
  ol: ['start', 'type', 'reversed'],
  q: ['cite'],
  table: ['border', 'summary', 'width'],
  // Markdown aligns the cells of its tables this way.
  td: ['colspan', 'headers', 'height', 'rowspan', 'scope', 'style', 'valign', 'width'],
  th: ['abbr', 'colspan', 'headers', 'height', 'rowspan', 'scope', 'style', 'valign', 'width'],
  time: ['datetime'],
};

/** Attributes whose values do more than say something. */
const VALUES: Readonly<Record<string, RegExp>> = {
  class: /^language-[\w+#.-]{1,64}$/,
  id: /^[\w:.-]{1,128}$/,
  name: /^[\w:.-]{1,128}$/,
  style: /^text-align:(?:left|right|center)$/,
};
const ADDRESSES: ReadonlySet<string> = new Set(['cite', 'href', 'src']);
const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/** What a page that shows the README would have to take out of it, or nothing when it can be shown as it is. */
export function readmeProblem(text: string): string | undefined {
  if (text.length > MAX_README) return `must be at most ${MAX_README} characters`;
  // In a whole page, where `<body onload=…>` in the text would reach the body around it.
  const found = firstProblem(parse5().parse(`<!DOCTYPE html><body>${rendered(text)}`));
  return found && `must be Markdown without active content, but has ${found}`;
}

/** Walks by hand: a tree may be deeper than the stack. */
function firstProblem(root: Node): string | undefined {
  const waiting: Node[] = [root];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const problem = 'tagName' in node ? elementProblem(node) : undefined;
    if (problem) return problem;
    for (const child of 'childNodes' in node ? node.childNodes : []) waiting.push(child);
  }
  return undefined;
}

const PAGE: ReadonlySet<string> = new Set(['html', 'head', 'body']);

function elementProblem({ tagName, attrs }: Element): string | undefined {
  if (PAGE.has(tagName) && attrs.length === 0) return undefined;
  if (!ELEMENTS.has(tagName)) return `the element <${tagName.slice(0, 32)}>`;
  const bad = attrs.find(({ name, value }) => !isAllowed(tagName, name, value));
  return bad && `the attribute ${bad.name.slice(0, 32)} of <${tagName}> with a value that is not allowed there`;
}

function isAllowed(tagName: string, name: string, value: string): boolean {
  if (!EVERYWHERE.includes(name) && !ATTRIBUTES[tagName]?.includes(name)) return false;
  if (ADDRESSES.has(name)) return isSafeAddress(value);
  return VALUES[name]?.test(value) ?? true;
}

/** Relative, or of a scheme that only shows something. Parsed as browsers do, who also see `java\nscript:`. */
function isSafeAddress(address: string): boolean {
  const base = 'https://relative.invalid/';
  return URL.canParse(address, base) && SCHEMES.has(new URL(address, base).protocol);
}
