import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Page {
  readonly html: string;
  /** Allows only the style and script of the page, and requests to this server. */
  readonly contentSecurityPolicy: string;
}

const read = (file: URL): string => readFileSync(file, 'utf8');

const styles = [
  new URL('./page.css', import.meta.url),
  new URL('./content.css', import.meta.url),
  new URL('./code.css', import.meta.url),
];

/** In the order of their dependencies. */
const scripts = [
  new URL('./dom.js', import.meta.url),
  new URL('./model.js', import.meta.url),
  new URL('./schema.js', import.meta.url),
  new URL('./request.js', import.meta.url),
  new URL('./operation.js', import.meta.url),
  new URL('./navigation.js', import.meta.url),
  new URL('./page.js', import.meta.url),
];

/** Removes `import` and `export`: on disk the scripts are modules, in the page they share one scope. */
const withoutModuleSyntax = (source: string): string =>
  source.replaceAll(/^import .*;\n/gm, '').replaceAll(/^export /gm, '');

/** Assembles the API page from its sources. The page is one file and loads only `/openapi.json`, below the prefix. */
export function assemblePage(pathPrefix = ''): Page {
  const style = styles.map(read).join('\n');
  const script = scripts.map((file) => withoutModuleSyntax(read(file))).join('\n');
  const html = read(new URL('./page.html', import.meta.url))
    .replaceAll('{{prefix}}', () => pathPrefix)
    .replace('/* style */', () => style)
    .replace('/* script */', () => script);
  return {
    html,
    contentSecurityPolicy: [
      "default-src 'none'",
      `style-src ${hashOf(style)}`,
      `script-src ${hashOf(script)}`,
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}

const hashOf = (source: string): string => `'sha256-${createHash('sha256').update(source).digest('base64')}'`;
