import assert from 'node:assert/strict';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { DescFile } from '@bufbuild/protobuf';
import { declarationsOfDescriptors } from './descriptors.ts';
import { type Declarations, declarationsOfRecord, type RecordedContract } from './recorded-contract.ts';

/** Returns one line for each declaration that differs. */
export function differences(recorded: Declarations, declared: Declarations): string[] {
  const show = (value: unknown) => (value ? inspect(value, { breakLength: Infinity, depth: null }) : 'nothing');
  return [...new Set([...recorded.keys(), ...declared.keys()])]
    .filter((name) => !isDeepStrictEqual(recorded.get(name), declared.get(name)))
    .map((name) => `${name}: recorded ${show(recorded.get(name))}, declared ${show(declared.get(name))}`);
}

/**
 * Fails unless `differences` finds a change of any single recorded value of a file. `additions` are declarations that
 * the recorded contract does not have.
 */
export function assertEveryValueIsCompared(
  contract: RecordedContract,
  file: DescFile,
  additions: readonly string[] = [],
): void {
  const declared = declarationsOfDescriptors([file]);
  for (const name of additions) declared.delete(name);
  const recorded = onlyFile(contract, `${file.name}.proto`);
  assert.deepEqual(differences(declarationsOfRecord(recorded), declared), []);
  for (const { parent, key, name } of leavesOf(recorded)) {
    const value = parent[key];
    parent[key] = modify(value);
    assert.notDeepEqual(differences(declarationsOfRecord(recorded), declared), [], `${name} is not compared`);
    parent[key] = value;
  }
}

function onlyFile(contract: RecordedContract, path: string): RecordedContract {
  const file = Object.values(contract.domains).find(({ files }) => files[path])?.files[path];
  assert.ok(file, `the recorded contract has no file ${path}`);
  return { domains: { only: { files: { [path]: file } } } };
}

/** A value that is not an object, and its place in the record. */
interface Leaf {
  readonly parent: Record<string, unknown>;
  readonly key: string;
  readonly name: string;
}

/** Not compared: hints for other tools, and `iam_mode`, which `iam_disabled` repeats. */
const notCompared = ['mcp', 'syntax', 'go_package', 'iam_mode'];

function* leavesOf(node: object, name = ''): Generator<Leaf> {
  const parent = node as Record<string, unknown>;
  for (const [key, value] of Object.entries(parent)) {
    if (notCompared.includes(key)) continue;
    if (isImplied(parent, key)) continue;
    if (typeof value === 'object' && value !== null) yield* leavesOf(value, `${name}.${key}`);
    else yield { parent, key, name: `${name}.${key}` };
  }
}

/**
 * Whether other properties determine this one: a method without capabilities and scope fields is unscoped, and one
 * without an iam option is public.
 */
function isImplied({ iam_mode, capabilities, scope_fields }: Record<string, unknown>, key: string): boolean {
  if (key !== 'unscoped' && key !== 'iam_disabled') return false;
  if (iam_mode === 'absent') return true;
  return key === 'unscoped' && [capabilities, scope_fields].every((list) => (list as string[]).length === 0);
}

function modify(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  return `${value}, modified`;
}
