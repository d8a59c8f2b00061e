import { SaxesParser } from 'saxes';
import { UnreadableFile } from './unreadable-file.ts';

const MAX_DEPTH = 200;

/**
 * The texts of the elements at these paths, such as `project/version`; the first of each. Namespaces do not count. Nothing
 * that a document refers to is ever fetched, and entities that it declares are not expanded.
 */
export function parseXmlTexts(content: Buffer, paths: readonly string[]): ReadonlyMap<string, string> {
  const wanted = new Set(paths);
  const deepest = Math.max(...paths.map((path) => path.split('/').length));
  const found = new Map<string, string>();
  const path: string[] = [];
  let text = '';
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => {
    if (path.length >= MAX_DEPTH) throw new UnreadableFile(`is nested more than ${MAX_DEPTH} levels deep`);
    path.push(name);
    text = '';
  });
  parser.on('text', (part) => {
    text += part;
  });
  parser.on('cdata', (part) => {
    text += part;
  });
  parser.on('closetag', () => {
    // Further down there is nothing to find, and a path for each of a million elements takes seconds.
    const at = path.length <= deepest ? path.join('/') : '';
    if (wanted.has(at) && !found.has(at)) found.set(at, text.trim());
    path.pop();
  });
  parser.on('error', (error) => {
    // Maven itself knows the names of HTML, and old POMs use them in texts that nobody needs.
    if (!/undefined entity/.test(error.message)) throw new UnreadableFile(`is not well-formed XML: ${error.message}`);
  });
  parser.write(decoded(content)).close();
  return found;
}

const ENCODING = /^<\?xml[^>]*\bencoding=["']([\w.-]+)["']/;

function decoded(content: Buffer): string {
  const [, encoding = 'utf-8'] = ENCODING.exec(content.toString('latin1', 0, 200)) ?? [];
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(content);
  } catch {
    throw new UnreadableFile(`is not text in ${encoding}`);
  }
}
