import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** The names, versions and licences of the packages that the bundled files belong to, as most licences require. */
export function noticesOf(files: readonly string[], root: string): string {
  const directories = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[1] ?? []));
  const notices = [...directories].sort().map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8'));
    const texts = globSync('{LICEN[CS]E,NOTICE,COPYING,licen[cs]e}*', { cwd: join(root, directory) }).sort();
    const text = texts.map((file) => readFileSync(join(root, directory, file), 'utf8').trim()).join('\n\n');
    return `${name} ${version}\nLicence: ${license ?? 'see below'}\n\n${text}\n`;
  });
  return `Wharfinger contains these packages.\n\n${notices.join(`\n${'-'.repeat(80)}\n\n`)}`;
}
