import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { Method } from '../../src/contract/method.ts';

/** Builds a request that has `uid` in the fields of its scope and path, and no other fields. */
export function requestWithUid({ desc, scope, routes }: Method, uid: string): object {
  const request: Record<string, unknown> = {};
  if (scope.length > 0) setField(request, desc.input, scope, uid);
  for (const { template } of routes) {
    for (const [, path = '', pattern] of template.matchAll(/\{([\w.]+)(?:=([^}]*))?\}/g)) {
      // Only `**` matches a uid, which contains slashes.
      setField(request, desc.input, path.split('.'), pattern === '**' ? uid : 'x');
    }
  }
  return request;
}

function setField(target: Record<string, unknown>, desc: DescMessage, path: readonly string[], value: string): void {
  const [name, ...rest] = path;
  const field: DescField | undefined = desc.fields.find((candidate) => candidate.name === name);
  if (!field) return;
  if (field.oneof && !field.message) {
    target[field.oneof.localName] ??= { case: field.localName, value };
    return;
  }
  if (!field.message) {
    target[field.localName] ??= value;
    return;
  }
  const inner = (target[field.localName] as Record<string, unknown> | undefined) ?? {};
  target[field.localName] = inner;
  setField(inner, field.message, rest, value);
}
