/**
 * Bundles src/ and the packages that it uses into dist/: `wharf.js`, the credential helper, the programs of background
 * threads, chunks that they share, and the files that they read. Nothing in dist/ needs node_modules. Does nothing when
 * dist/ is up to date, unless --force is given.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { basename, dirname, join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';
import { noticesOf } from './third-party-notices.ts';

const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const FINGERPRINT = '.fingerprint';

/** The files that become part of the bundle, or are copied beside it. */
const listSources = (): string[] =>
  globSync('src/**/*', { cwd: root })
    .filter((path) => !/\.(test|testing)\.ts$/.test(path) && statSync(join(root, path)).isFile())
    .sort();

/** Changes with every input of the build. Reads no file, so that a build that is up to date takes no time. */
function fingerprint(sources: readonly string[]): string {
  const hash = createHash('sha256').update(process.env.BUILD_COMMIT ?? '');
  for (const path of [...sources, 'package.json', 'package-lock.json', 'tools/build.ts', 'LICENSE']) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

const FILE_URL = /new URL\('(\.[^']+)', import\.meta\.url\)/g;

/** The files that the sources name by `new URL('./name', import.meta.url)`: programs, and files that they read. */
function filesNamedByUrl(sources: readonly string[]): { readonly programs: string[]; readonly assets: string[] } {
  const named = sources
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(FILE_URL)].map(([, name = '']) => join(dirname(path), name)),
    );
  const unique = [...new Set(named)].filter((path) => sources.includes(path));
  const names = unique.map((path) => basename(path));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`two files that are named by a URL are called ${twice}: dist/ can have only one`);
  return {
    programs: unique.filter((path) => path.endsWith('.ts')),
    assets: unique.filter((path) => !path.endsWith('.ts')),
  };
}

/** All files of dist/ are beside each other, except for the assets. */
const rewriteUrls: Plugin = {
  name: 'rewrite-urls',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(FILE_URL, (_, name: string) => {
        const file = basename(name);
        const target = file.endsWith('.ts') ? `./${file.replace(/ts$/, 'js')}` : `./assets/${file}`;
        return `new URL('${target}', import.meta.url)`;
      }),
      loader: 'ts',
    }));
  },
};

/** The command line imports the server, which is built on its own. */
const serverIsExternal: Plugin = {
  name: 'server-is-external',
  setup({ onResolve }) {
    onResolve({ filter: /\/(run-serve|main)\.ts$/ }, ({ path }) => ({
      path: `./${basename(path, '.ts')}.js`,
      external: true,
    }));
  },
};

/**
 * Takes the modules of Node from the process. An import statement would also evaluate every export of theirs that is
 * computed on first use, such as the streams of node:fs and Web Crypto: 5 % of a start.
 */
const modulesOfNode: Plugin = {
  name: 'modules-of-node',
  setup({ onResolve, onLoad }) {
    const require = createRequire(import.meta.url);
    onResolve({ filter: /^[a-z_:/0-9]+$/ }, ({ path, kind }) =>
      kind === 'import-statement' && isBuiltin(path) ? { path, namespace: 'node', sideEffects: false } : undefined,
    );
    onLoad({ filter: /./, namespace: 'node' }, ({ path }) => {
      const names = Object.keys(require(path)).filter((name) => /^[a-z_]\w*$/i.test(name) && name !== 'default');
      // Marked as pure so that the bundle has only what is used.
      return {
        contents: [
          `const builtin = /* @__PURE__ */ process.getBuiltinModule('${path}');`,
          'export default builtin;',
          ...names.map((name) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})();`),
        ].join('\n'),
      };
    });
  },
};

const optionsFor = (outdir: string): BuildOptions & { readonly metafile: true } => ({
  absWorkingDir: root,
  outdir,
  entryNames: '[name]',
  chunkNames: 'chunk-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  // An optional package of pg, which it works without.
  external: ['pg-native'],
  define: { BUILD_COMMIT: JSON.stringify(process.env.BUILD_COMMIT ?? '') },
  // CommonJS packages call require() for the modules of Node.
  banner: {
    js: 'const require = process.getBuiltinModule;',
  },
  plugins: [rewriteUrls, modulesOfNode],
});

async function build(sources: readonly string[], outdir: string): Promise<void> {
  const { programs, assets } = filesNamedByUrl(sources);
  const esbuild = await import('esbuild');
  const options = optionsFor(outdir);
  const results = await Promise.all([
    // The server in few files, because each further one makes a start slower, and what it loads on demand in others.
    esbuild.build({ ...options, entryPoints: ['src/cli/run-serve.ts', 'src/main.ts'], chunkNames: 'main-[hash]' }),
    // The commands in many, because each needs only a small part.
    esbuild.build({
      ...options,
      entryPoints: ['src/cli/wharf.ts', 'src/cli/docker-credential-wharf.ts', ...programs],
      plugins: [rewriteUrls, modulesOfNode, serverIsExternal],
    }),
  ]);
  const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  mkdirSync(join(outdir, 'assets'));
  for (const path of assets) copyFileSync(join(root, path), join(outdir, 'assets', basename(path)));
  for (const path of globSync('src/cli/*.sh', { cwd: root })) {
    copyFileSync(join(root, path), join(outdir, basename(path)));
  }
  copyFileSync(join(root, 'LICENSE'), join(outdir, 'LICENSE'));
  // Node reads it to tell the format of the files. Without it Node would search the parent directories.
  writeFileSync(join(outdir, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(join(outdir, 'THIRD-PARTY-NOTICES.txt'), noticesOf(inputs, root));
}

function readFingerprint(): string | undefined {
  try {
    return readFileSync(join(dist, FINGERPRINT), 'utf8');
  } catch {
    return undefined;
  }
}

/** Replaces dist/ at once by the new build, so that programs that start in the meantime see one or the other. */
export async function buildIfStale({ force = false } = {}): Promise<void> {
  const sources = listSources();
  const current = fingerprint(sources);
  if (!force && readFingerprint() === current) return;
  const [built, replaced] = [`${dist}.new-${process.pid}`, `${dist}.old-${process.pid}`];
  try {
    await build(sources, built);
    writeFileSync(join(built, FINGERPRINT), current);
    if (existsSync(dist)) renameSync(dist, replaced);
    renameSync(built, dist);
  } finally {
    for (const directory of [built, replaced]) rmSync(directory, { recursive: true, force: true });
  }
}

if (import.meta.main) await buildIfStale({ force: process.argv.includes('--force') });
