import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { Method } from '../../src/contract/method.ts';

/** A request that carries `uid` wherever its scope or path wants one, and nothing else. */
export function requestAt({ desc, scope, routes }: Method, uid: string): object {
  const request: Record<string, unknown> = {};
  if (scope.length > 0) place(request, desc.input, scope, uid);
  for (const { template } of routes) {
    for (const [, path = '', pattern] of template.matchAll(/\{([\w.]+)(?:=([^}]*))?\}/g)) {
      // Only `**` takes a uid with its slashes.
      place(request, desc.input, path.split('.'), pattern === '**' ? uid : 'x');
    }
  }
  return request;
}

function place(target: Record<string, unknown>, desc: DescMessage, path: readonly string[], value: string): void {
  const [name, ...rest] = path;
  const field: DescField | undefined = desc.fields.find((candidate) => candidate.name === name);
  if (!field) return;
  if (!field.message) {
    target[field.localName] ??= value;
    return;
  }
  const inner = (target[field.localName] as Record<string, unknown> | undefined) ?? {};
  target[field.localName] = inner;
  place(inner, field.message, rest, value);
}
