import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Bundle } from './bundle.ts';
import type { NodeRuntime } from './node-runtime.ts';
import type { Platform } from './platforms.ts';
import type { Source } from './source.ts';
import { below, fileEntry, linkEntry, type TarEntry, tarOf } from './tar.ts';

/**
 * Builds the archive of a platform: the bundle with Node, which runs from any directory. The launchers of the bundle
 * prefer the Node beside them.
 */
export function buildArchive(
  platform: Platform,
  bundle: Bundle,
  node: NodeRuntime,
  sbom: string,
  source: Source,
): Promise<Buffer> {
  const copy = (path: string, from: string): TarEntry => fileEntry(path, readFileSync(join(source.root, from)));
  const entries: TarEntry[] = [
    linkEntry('bin/wharf', '../lib/wharf.sh'),
    linkEntry('bin/docker-credential-wharf', '../lib/docker-credential-wharf.sh'),
    ...below('lib', bundle.files),
    fileEntry('lib/node', node.program, 0o755),
    fileEntry('lib/NODE-LICENSE', node.licence),
    copy('share/systemd/wharfinger.service', 'deploy/systemd/wharfinger.service'),
    copy('INSTALL.md', 'docs/INSTALL.md'),
    copy('LICENSE', 'LICENSE'),
    fileEntry('sbom.spdx.json', sbom),
  ];
  const name = `wharfinger-${source.version}-${platform.name}`;
  return promisify(gzip)(tarOf(below(name, entries), source.time), { level: 6 });
}
