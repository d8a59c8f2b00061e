import { buildTime } from './build-time.ts';
import { UnreadableFile } from './unreadable-file.ts';
import { normalPythonName } from './wheel-name.ts';

/** What a package says about itself. */
export interface PackageFacts {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** When it was built, in milliseconds, where the archive tells. */
  readonly time: number | undefined;
}

/** The longest there are have some hundred thousand bytes: they hold a README. */
export const MAX_METADATA = 8 * 1024 * 1024;

const HEADER = /^([A-Za-z0-9-]+):[ \t]*(.*)$/;

/** Reads the core metadata of a Python package: headers as in e-mail, then text. */
export function readMetadata(content: Buffer, fileName: string, time: number): PackageFacts {
  const headers = headersOf(content.toString('utf8'));
  const [name = '', version = '', summary = ''] = ['name', 'version', 'summary'].map((key) => headers.get(key));
  if (name === '') throw new UnreadableFile('has metadata without a Name');
  if (version === '') throw new UnreadableFile('has metadata without a Version');
  // Installers refuse such files too: one could pass for another package.
  if (!normalPythonName(fileName).startsWith(`${normalPythonName(name)}-`)) {
    throw new UnreadableFile(`has the metadata of another package, ${name}`);
  }
  return { name, version, description: summary === 'UNKNOWN' ? '' : summary, time: buildTime(time) };
}

/** The first of each name counts. What goes on in further lines is joined once: line by line it would take for ever. */
function headersOf(text: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string[]>();
  let last: string[] | undefined;
  for (const line of text.split(/\r?\n/)) {
    if (line === '') break;
    if (/^[ \t]/.test(line)) {
      last?.push(line.trim());
      continue;
    }
    const [, key = '', value = ''] = HEADER.exec(line) ?? [];
    const name = key.toLowerCase();
    last = name === '' || headers.has(name) ? undefined : [value.trim()];
    if (last !== undefined) headers.set(name, last);
  }
  return new Map([...headers].map(([name, lines]) => [name, lines.join(' ').trim()]));
}
