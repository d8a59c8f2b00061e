/** Makes the npm package from dist/ in release/. It needs no other package, because the bundle contains them. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buildIfStale } from './build.ts';

const root = dirname(import.meta.dirname);

/** Returns the path of the package. */
export async function pack(target = join(root, 'release')): Promise<string> {
  await buildIfStale();
  const { name, version, description, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const scratch = mkdtempSync(join(tmpdir(), 'wharf-pack-'));
  try {
    cpSync(join(root, 'dist'), scratch, { recursive: true, filter: (path) => !/[\\/]\.[^\\/]+$/.test(path) });
    for (const file of ['README.md', 'CHANGELOG.md']) copyFileSync(join(root, file), join(scratch, file));
    const manifest = {
      ...{ name, version, description, license, type: 'module' },
      // Of node:sqlite, whose backup() is from 22.16. The launcher checks it too, because npm only warns.
      engines: { node: '>=22.16' },
      os: ['!win32'],
      // `npx wharfinger` runs the program that has the name of the package.
      bin: { wharfinger: 'wharf.sh', wharf: 'wharf.sh', 'docker-credential-wharf': 'docker-credential-wharf.sh' },
    };
    writeFileSync(join(scratch, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    mkdirSync(target, { recursive: true });
    const output = execFileSync('npm', ['pack', '--json', '--pack-destination', target], {
      cwd: scratch,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return join(target, JSON.parse(output)[0].filename);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (import.meta.main) process.stdout.write(`${await pack(process.argv[2])}\n`);
