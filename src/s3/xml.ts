import { SaxesParser } from 'saxes';

/** An element of a response, with the text directly in it. */
export interface XmlElement {
  readonly name: string;
  text: string;
  readonly children: XmlElement[];
}

/** Parses a response of S3. Returns undefined if it is not XML. */
export function parseXml(text: string): XmlElement | undefined {
  const root: XmlElement = { name: '', text: '', children: [] };
  const path = [root];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => {
    const element: XmlElement = { name: name.slice(name.indexOf(':') + 1), text: '', children: [] };
    path.at(-1)?.children.push(element);
    path.push(element);
  });
  parser.on('text', (part) => {
    const element = path.at(-1);
    if (element) element.text += part;
  });
  parser.on('closetag', () => void path.pop());
  parser.on('error', (error) => {
    throw error;
  });
  try {
    parser.write(text).close();
  } catch {
    return undefined;
  }
  return root.children[0];
}

export const childrenOf = (element: XmlElement | undefined, name: string): XmlElement[] =>
  element?.children.filter((child) => child.name === name) ?? [];

export const textOf = (element: XmlElement | undefined, name: string): string | undefined =>
  childrenOf(element, name)[0]?.text;

/** Escapes a text for an XML element. */
export const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
