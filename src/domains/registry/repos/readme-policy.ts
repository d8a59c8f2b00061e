import MarkdownIt from 'markdown-it';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { MAX_README } from './readme-size.ts';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

/** Renders Markdown with raw HTML and all links unchanged, so that the policy checks both. */
function render(text: string): string {
  const markdown = new MarkdownIt({ html: true, linkify: false });
  markdown.validateLink = () => true;
  return markdown.render(text);
}

/** Elements for text, structure and images. None runs code, loads documents, takes input or changes the page. */
const ELEMENTS: ReadonlySet<string> = new Set(
  (
    'a abbr acronym article aside b bdi bdo blockquote br caption center cite code col colgroup dd del details dfn div ' +
    'dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hgroup hr i img ins kbd li mark ol p pre q rp rt ruby s samp ' +
    'section small span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr'
  ).split(' '),
);

const GLOBAL_ATTRIBUTES = ['align', 'dir', 'id', 'lang', 'title'];
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
  // The Markdown renderer aligns table cells with `style`.
  td: ['colspan', 'headers', 'height', 'rowspan', 'scope', 'style', 'valign', 'width'],
  th: ['abbr', 'colspan', 'headers', 'height', 'rowspan', 'scope', 'style', 'valign', 'width'],
  time: ['datetime'],
};

/** Attributes whose values are restricted. */
const VALUES: Readonly<Record<string, RegExp>> = {
  class: /^language-[\w+#.-]{1,64}$/,
  id: /^[\w:.-]{1,128}$/,
  name: /^[\w:.-]{1,128}$/,
  style: /^text-align:(?:left|right|center)$/,
};
const URL_ATTRIBUTES: ReadonlySet<string> = new Set(['cite', 'href', 'src']);
const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/** What makes a README unsafe to show in a page, or undefined when it is safe. */
export function readmeProblem(text: string): string | undefined {
  if (text.length > MAX_README) return `must be at most ${MAX_README} characters`;
  // Parsed as a complete page, because attributes of `<body onload=…>` in the text go to the body of the page.
  const found = firstProblem(parse(`<!DOCTYPE html><body>${render(text)}`));
  return found && `must be Markdown without active content, but has ${found}`;
}

/** Iterates instead of recursing, because a tree may be deeper than the call stack allows. */
function firstProblem(root: Node): string | undefined {
  const pending: Node[] = [root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    const problem = 'tagName' in node ? elementProblem(node) : undefined;
    if (problem) return problem;
    for (const child of 'childNodes' in node ? node.childNodes : []) pending.push(child);
  }
  return undefined;
}

const PAGE_ELEMENTS: ReadonlySet<string> = new Set(['html', 'head', 'body']);

function elementProblem({ tagName, attrs }: Element): string | undefined {
  if (PAGE_ELEMENTS.has(tagName) && attrs.length === 0) return undefined;
  if (!ELEMENTS.has(tagName)) return `the element <${tagName.slice(0, 32)}>`;
  const bad = attrs.find(({ name, value }) => !isAllowed(tagName, name, value));
  return bad && `the attribute ${bad.name.slice(0, 32)} of <${tagName}> with a value that is not allowed there`;
}

function isAllowed(tagName: string, name: string, value: string): boolean {
  if (!GLOBAL_ATTRIBUTES.includes(name) && !ATTRIBUTES[tagName]?.includes(name)) return false;
  if (URL_ATTRIBUTES.has(name)) return isSafeUrl(value);
  return VALUES[name]?.test(value) ?? true;
}

/** Whether a URL is relative or has a harmless scheme. It is parsed as browsers do, which accept `java\nscript:`. */
function isSafeUrl(url: string): boolean {
  const base = 'https://relative.invalid/';
  return URL.canParse(url, base) && SCHEMES.has(new URL(url, base).protocol);
}
