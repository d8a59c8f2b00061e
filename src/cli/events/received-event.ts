import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { escapeForTerminal, formatValue, jsonText } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';

/** A received event and the problems of its verification. */
export interface ReceivedEvent {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly problems: readonly string[];
  /** Whether the secret is known, so that the signature was verified. */
  readonly isSigned: boolean;
}

/** Formats an event as text, or as structured CloudEvents JSON. */
export function receivedEventText(event: ReceivedEvent, output: Output, isPretty: boolean): string {
  const { headers, body, problems, isSigned } = event;
  const data = parseBody(body);
  const attributes: JsonObject = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('ce-')) attributes[name.slice(3)] = decodeHeader(String(value));
  }
  if (output === 'json') return jsonText({ ...attributes, data, problems: [...problems] }, isPretty);
  const verdict =
    problems.length === 0 ? (isSigned ? 'verified' : 'verified, except for its signature') : problems.join('; ');
  const { type, subject, time } = attributes;
  const actor = formatValue((data as { actor?: { subject?: string } } | null)?.actor?.subject);
  const lines = [
    `${formatValue(time)}  ${formatValue(type)}  (${escapeForTerminal(verdict)})`,
    `  subject  ${formatValue(subject)}`,
    ...(actor === '' ? [] : [`  actor    ${actor}`]),
  ];
  return `${lines.join('\n')}\n${indent(jsonText((data as JsonObject | null)?.body ?? null, true))}`;
}

function parseBody(body: Buffer): JsonValue {
  try {
    return JSON.parse(body.toString()) as JsonValue;
  } catch {
    return body.toString();
  }
}

/** Decodes percent-encoding. Returns a value with invalid encoding unchanged. */
function decodeHeader(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ');
