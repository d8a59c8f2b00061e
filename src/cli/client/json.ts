import type { JsonObject } from '@bufbuild/protobuf';

/** Parses a JSON object. Returns undefined for any other text. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
