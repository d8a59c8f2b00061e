import { SaxesParser } from 'saxes';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';

const MAX_DEPTH = 200;

/**
 * Returns the text of the first element at each path, such as `project/version`. Ignores namespaces. Does not fetch
 * external resources or expand declared entities.
 */
export function readXmlTexts(content: Buffer, paths: readonly string[]): ReadonlyMap<string, string> {
  const pathSet = new Set(paths);
  const maxPathLength = Math.max(...paths.map((path) => path.split('/').length));
  const texts = new Map<string, string>();
  const elements: string[] = [];
  let text = '';
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => {
    if (elements.length >= MAX_DEPTH) throw new UnreadableFileError(`is nested more than ${MAX_DEPTH} levels deep`);
    elements.push(name);
    text = '';
  });
  parser.on('text', (part) => {
    text += part;
  });
  parser.on('cdata', (part) => {
    text += part;
  });
  parser.on('closetag', () => {
    // Deeper elements are not needed, and to build the paths of a million elements takes seconds.
    const path = elements.length <= maxPathLength ? elements.join('/') : '';
    if (pathSet.has(path) && !texts.has(path)) texts.set(path, text.trim());
    elements.pop();
  });
  parser.on('error', (error) => {
    // Maven accepts HTML entities. Old POMs have them in texts that are not read here.
    if (!/undefined entity/.test(error.message))
      throw new UnreadableFileError(`is not well-formed XML: ${error.message}`);
  });
  parser.write(decodeXml(content)).close();
  return texts;
}

const ENCODING = /^<\?xml[^>]*\bencoding=["']([\w.-]+)["']/;

function decodeXml(content: Buffer): string {
  const [, encoding = 'utf-8'] = ENCODING.exec(content.toString('latin1', 0, 200)) ?? [];
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(content);
  } catch {
    throw new UnreadableFileError(`is not valid ${encoding}`);
  }
}
