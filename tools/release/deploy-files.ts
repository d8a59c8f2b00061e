import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { run } from './run.ts';
import type { Source } from './source.ts';
import { below, fileEntry, tarOf } from './tar.ts';

/** Builds the package of the Helm chart, with the bytes that `helm install` reads. */
export function buildChart(source: Source): Promise<Buffer> {
  const directory = join(source.root, 'deploy/helm/wharfinger');
  const chart = readFileSync(join(directory, 'Chart.yaml'), 'utf8');
  if (!chart.includes(`\nversion: ${source.version}\n`)) {
    throw new Error(`deploy/helm/wharfinger/Chart.yaml has another version than package.json (${source.version})`);
  }
  return tarGzOf('wharfinger', directory, source);
}

/** Builds the archive with the compose file and its example of settings. */
export const buildCompose = (source: Source): Promise<Buffer> =>
  tarGzOf('wharfinger-compose', join(source.root, 'deploy/compose'), source);

/** Returns an archive of the files of a directory that belong to the repository, below a directory of this name. */
function tarGzOf(name: string, directory: string, source: Source): Promise<Buffer> {
  const paths = run('git', ['ls-files', '-z'], directory).split('\0').filter(Boolean);
  const files = paths.map((path) => fileEntry(path, readFileSync(join(directory, path))));
  return promisify(gzip)(tarOf(below(name, files), source.time), { level: 9 });
}
