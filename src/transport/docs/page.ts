import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Page {
  readonly html: string;
  /** Allows only the style and script of the page, and requests to this server. */
  readonly contentSecurityPolicy: string;
}

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

const styles = ['page.css', 'content.css', 'code.css'];

/** In the order of their dependencies. */
const scripts = ['dom.js', 'model.js', 'schema.js', 'request.js', 'operation.js', 'navigation.js', 'page.js'];

/** Removes `import` and `export`: on disk the scripts are modules, in the page they share one scope. */
const withoutModuleSyntax = (source: string): string =>
  source.replaceAll(/^import .*;\n/gm, '').replaceAll(/^export /gm, '');

/** Assembles the API page from its sources. The page is one file and loads only `/openapi.json`. */
export function assemblePage(): Page {
  const style = styles.map(read).join('\n');
  const script = scripts.map((name) => withoutModuleSyntax(read(name))).join('\n');
  const html = read('page.html')
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
