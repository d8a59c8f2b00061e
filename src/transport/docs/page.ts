import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Page {
  readonly html: string;
  /** Allows the page its own style and script, requests to this server, and nothing else. */
  readonly contentSecurityPolicy: string;
}

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');

const styles = ['page.css', 'content.css', 'code.css'];

/** In the order in which they use each other. */
const scripts = ['dom.js', 'model.js', 'schema.js', 'request.js', 'operation.js', 'navigation.js', 'page.js'];

/** On disk the scripts are modules that import each other; in the page they share one scope, so those words go. */
const joined = (source: string): string => source.replaceAll(/^import .*;\n/gm, '').replaceAll(/^export /gm, '');

/** Puts the API page together: one file that needs nothing but `/openapi.json`. */
export function assemblePage(): Page {
  const style = styles.map(read).join('\n');
  const script = scripts.map((name) => joined(read(name))).join('\n');
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
