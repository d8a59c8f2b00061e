import { protectDataDirectory } from '../../base/private-files.ts';
import type { Terminal } from '../output/terminal.ts';

/** Makes the files of a data directory private before a command reads them, and says what it changed. */
export function protectData(data: string, terminal: Terminal): void {
  for (const change of protectDataDirectory(data)) terminal.err(`wharf: ${change}\n`);
}
