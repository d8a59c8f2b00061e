import assert from 'node:assert/strict';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { DescFile } from '@bufbuild/protobuf';
import { declaredByDescriptors } from './descriptors.ts';
import { type Declarations, declaredByFacts, type Facts } from './facts.ts';

/** One line for each declaration that is not the same on both sides. */
export function differences(facts: Declarations, contract: Declarations): string[] {
  const show = (value: unknown) => (value ? inspect(value, { breakLength: Infinity, depth: null }) : 'nothing');
  return [...new Set([...facts.keys(), ...contract.keys()])]
    .filter((name) => !isDeepStrictEqual(facts.get(name), contract.get(name)))
    .map((name) => `${name}: the facts have ${show(facts.get(name))}, we have ${show(contract.get(name))}`);
}

/** Fails unless a change of any single fact about a file would be noticed. `additions` are ours beyond the facts. */
export function assertNoFactEscapes(facts: Facts, file: DescFile, additions: readonly string[] = []): void {
  const contract = declaredByDescriptors([file]);
  for (const name of additions) contract.delete(name);
  const factsOfFile = onlyFile(facts, `${file.name}.proto`);
  assert.deepEqual(differences(declaredByFacts(factsOfFile), contract), []);
  for (const { holder, key, name } of leavesOf(factsOfFile)) {
    const value = holder[key];
    holder[key] = changed(value);
    assert.notDeepEqual(differences(declaredByFacts(factsOfFile), contract), [], `${name} is not compared`);
    holder[key] = value;
  }
}

function onlyFile(facts: Facts, path: string): Facts {
  const file = Object.values(facts.domains).find(({ files }) => files[path])?.files[path];
  assert.ok(file, `no facts about ${path}`);
  return { domains: { only: { files: { [path]: file } } } };
}

interface Leaf {
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly name: string;
}

/** Not compared: hints for other tools, and `iam_mode`, which `iam_disabled` repeats. */
const notCompared = ['mcp', 'syntax', 'go_package', 'iam_mode'];

function* leavesOf(node: object, name = ''): Generator<Leaf> {
  const holder = node as Record<string, unknown>;
  for (const [key, value] of Object.entries(holder)) {
    if (notCompared.includes(key)) continue;
    if (isImplied(holder, key)) continue;
    if (typeof value === 'object' && value !== null) yield* leavesOf(value, `${name}.${key}`);
    else yield { holder, key, name: `${name}.${key}` };
  }
}

/** A method that names nothing to check has no scope either way, and one without an iam option is not checked at all. */
function isImplied({ iam_mode, capabilities, scope_fields }: Record<string, unknown>, key: string): boolean {
  if (key !== 'unscoped' && key !== 'iam_disabled') return false;
  if (iam_mode === 'absent') return true;
  return key === 'unscoped' && [capabilities, scope_fields].every((list) => (list as string[]).length === 0);
}

function changed(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  return `${value}, but not quite`;
}
