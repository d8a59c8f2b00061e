/**
 * Imports run one way: a layer may import itself and the layers of lower rows, never a neighbour or what lies above.
 * The core also knows nothing of sockets: only the edges may import network modules. Packages for traces are loaded on
 * demand: only the layer tracing may import them, and others may only import that layer dynamically.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const rows = [
  ['base'],
  ['contract', 'tracing'],
  ['formats'],
  ['limits', 's3'],
  ['store', 'blobs'],
  ['resource'],
  ['domains'],
  ['access'],
  ['identity'],
  ['pipeline'],
  ['transport', 'compat', 'oci', 'delivery', 'monitoring', 'backup'],
  ['cli', 'main'],
];
const rank = new Map(rows.flatMap((layers, row) => layers.map((layer) => [layer, row] as const)));

const network = /^node:(?:http|https|http2|net|tls)$|^@grpc\/|\/node-http\.ts$/;
const edges = new Set(['transport', 'oci', 'cli', 'main', 'delivery', 'identity', 's3']);

const statement =
  /^\s*(?:import|export)\b[^'";]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;

const root = process.argv[2] ?? dirname(import.meta.dirname);
const violations: string[] = [];

for (const file of globSync('src/**/*.ts', { cwd: root, exclude: ['src/contract/gen/**'] }).sort()) {
  const layer = layerOf(file);
  const refuse = (other: string, specifier: string) =>
    violations.push(`${file}: layer ${layer} must not import layer ${other} (${specifier})`);
  if (!rank.has(layer)) violations.push(`${file}: ${layer} is not a layer; tools/check-imports.ts lists them`);
  for (const { specifier, isDynamic } of specifiersIn(readFileSync(join(root, file), 'utf8'))) {
    if (network.test(specifier) && !edges.has(layer)) refuse('network', specifier);
    if (specifier.startsWith('@opentelemetry/') && layer !== 'tracing') refuse('tracing', specifier);
    if (!specifier.startsWith('.')) continue;
    const other = layerOf(join(dirname(file), specifier));
    if (other === 'tracing' && layer !== 'tracing' && !isDynamic) refuse(`${other} statically`, specifier);
    if (!mayImport(layer, other, /\.(?:test|testing)\.ts$/.test(file))) refuse(other, specifier);
  }
}

process.stderr.write(violations.map((line) => `${line}\n`).join(''));
process.exitCode = violations.length === 0 ? 0 : 1;

/** The folder below src/; `main` for the files right in it; the folder at the top for everything else. */
function layerOf(path: string): string {
  const [top = '', folder = '', ...rest] = relative(root, join(root, path)).split(sep);
  if (top !== 'src') return top;
  return rest.length === 0 ? 'main' : folder;
}

function specifiersIn(source: string): { readonly specifier: string; readonly isDynamic: boolean }[] {
  return [...source.matchAll(statement)].map(([, from, bare, dynamic]) => ({
    specifier: from ?? bare ?? dynamic ?? '',
    isDynamic: dynamic !== undefined,
  }));
}

function mayImport(layer: string, other: string, isTest: boolean): boolean {
  if (layer === other || other === 'package.json') return true;
  if (other === 'test' || other === 'tools') return isTest;
  // The program and its commands are one: main.ts composes what cli/ starts.
  if (rank.get(layer) === rows.length - 1 && rank.get(other) === rows.length - 1) return true;
  return (rank.get(other) ?? Infinity) < (rank.get(layer) ?? -1);
}
