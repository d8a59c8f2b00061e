import type { JsonObject } from '@bufbuild/protobuf';

/** The JSON object that a text holds; nothing when it holds anything else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
