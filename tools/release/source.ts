import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './run.ts';

/** The source tree that artifacts are made from. */
export interface Source {
  readonly root: string;
  readonly version: string;
  /** Ends in `-dirty` if the working tree has changes. */
  readonly commit: string;
  /** The time of the commit. All files of all artifacts have it, so the same commit gives the same bytes. */
  readonly time: Date;
  /** For downloads, which a second build takes from here. */
  readonly cacheDirectory: string;
  /** Where artifacts are written. */
  readonly outputDirectory: string;
}

export function readSource(root = dirname(dirname(import.meta.dirname))): Source {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const isChanged = run('git', ['status', '--porcelain'], root) !== '';
  const [commit = '', seconds] = run('git', ['log', '-1', '--format=%H %ct'], root).trim().split(' ');
  return {
    root,
    version,
    commit: isChanged ? `${commit}-dirty` : commit,
    time: new Date(Number(seconds) * 1000),
    cacheDirectory: join(root, 'node_modules/.cache/wharf-release'),
    outputDirectory: join(root, 'release'),
  };
}
