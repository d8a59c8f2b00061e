import { buildTimeOf } from '../archives/build-time.ts';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { normalizePythonName } from './python-name.ts';

/** The core metadata of a Python package, as far as the server stores it. */
export interface PythonMetadata {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The build time in milliseconds, if the archive has it. */
  readonly time: number | undefined;
}

/** The longest metadata have some hundred thousand bytes, because they contain a README. */
export const MAX_METADATA_BYTES = 8 * 1024 * 1024;

const HEADER = /^([A-Za-z0-9-]+):[ \t]*(.*)$/;

/** Parses core metadata: headers as in e-mail, followed by text. `fileName` is the name of the package file. */
export function parsePythonMetadata(content: Buffer, fileName: string, time: number): PythonMetadata {
  const headers = parseHeaders(content.toString('utf8'));
  const [name = '', version = '', summary = ''] = ['name', 'version', 'summary'].map((key) => headers.get(key));
  if (name === '') throw new UnreadableFileError('has metadata without a Name');
  if (version === '') throw new UnreadableFileError('has metadata without a Version');
  // Installers refuse such files too, because a file could pretend to be another package.
  if (!normalizePythonName(fileName).startsWith(`${normalizePythonName(name)}-`)) {
    throw new UnreadableFileError(`has the metadata of another package, ${name}`);
  }
  return { name, version, description: summary === 'UNKNOWN' ? '' : summary, time: buildTimeOf(time) };
}

/**
 * Returns the first header of each name. Continuation lines are joined at the end, because joining them one by one
 * takes quadratic time.
 */
function parseHeaders(text: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string[]>();
  let current: string[] | undefined;
  for (const line of text.split(/\r?\n/)) {
    if (line === '') break;
    if (/^[ \t]/.test(line)) {
      current?.push(line.trim());
      continue;
    }
    const [, key = '', value = ''] = HEADER.exec(line) ?? [];
    const name = key.toLowerCase();
    current = name === '' || headers.has(name) ? undefined : [value.trim()];
    if (current !== undefined) headers.set(name, current);
  }
  return new Map([...headers].map(([name, lines]) => [name, lines.join(' ').trim()]));
}
