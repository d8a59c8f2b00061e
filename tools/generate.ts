/**
 * Generates src/contract/gen from contract/: the code, the lists of files, and the comments for the API documentation. With --check it
 * writes nothing, lists the files that are out of date, and then exits with 1.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { commentsOf } from './comments.ts';
import { fileLists, listedTypes } from './file-lists.ts';

const root = dirname(import.meta.dirname);
const target = join('src', 'contract', 'gen');
const bin = join(root, 'node_modules', '.bin');

/** Runs the buf that npm installed. Its plugins run on the Node that npm installed. */
const buf = (...args: string[]) =>
  promisify(execFile)(join(bin, 'buf'), args, {
    cwd: root,
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
    encoding: 'buffer',
    maxBuffer: 64 * 1024 * 1024,
  });

async function readTree(directory: string): Promise<Map<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    await Promise.all(
      names.map(async (name) => [name.slice(directory.length + 1), await readFile(name, 'utf8')] as const),
    ),
  );
}

async function generate(): Promise<Map<string, string>> {
  const scratch = await mkdtemp(join(tmpdir(), 'wharfinger-generate-'));
  try {
    const [descriptors] = await Promise.all([
      buf('build', '--as-file-descriptor-set', '--output', '-#format=binpb'),
      buf('generate', '--output', scratch),
    ]);
    const tree = await readTree(join(scratch, target));
    const comments = commentsOf(descriptors.stdout);
    const { js, dts } = fileLists(descriptors.stdout);
    return tree
      .set('comments.json', `${JSON.stringify(comments, null, 1)}\n`)
      .set('listed-types.json', `${JSON.stringify(listedTypes(descriptors.stdout), null, 1)}\n`)
      .set('files.js', js)
      .set('files.d.ts', dts);
  } finally {
    await rm(scratch, { recursive: true });
  }
}

const generated = await generate().catch(({ message, stderr }: { message: string; stderr?: Buffer }) => {
  // buf reports what is wrong, and where.
  process.stderr.write(stderr?.length ? stderr : `${message}\n`);
  process.exit(1);
});
const present = await readTree(join(root, target));
const changed = [...generated].filter(([name, text]) => present.get(name) !== text);
const obsolete = [...present.keys()].filter((name) => !generated.has(name));

if (process.argv.includes('--check')) {
  for (const [name] of changed) report(name, present.has(name) ? 'differs from the contract' : 'is missing');
  for (const name of obsolete) report(name, 'is obsolete');
  if (process.exitCode) process.stderr.write('Run npm run generate to update them.\n');
} else {
  for (const [name, text] of changed) {
    const path = join(root, target, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  for (const name of obsolete) await rm(join(root, target, name));
}

function report(name: string, problem: string): void {
  process.stderr.write(`${join(target, name)} ${problem}\n`);
  process.exitCode = 1;
}
