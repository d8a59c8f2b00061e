import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { jsonText, plain, visible } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';

/** An event that came in, and what is wrong with it. */
export interface Arrived {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly problems: readonly string[];
  /** Whether there was a secret to check its signature with. */
  readonly isSigned: boolean;
}

/** An event for people, or in the structured form of CloudEvents for programs. */
export function arrivedText(arrived: Arrived, output: Output, forPerson: boolean): string {
  const { headers, body, problems, isSigned } = arrived;
  const data = parse(body);
  const attributes: JsonObject = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith('ce-')) attributes[name.slice(3)] = decoded(String(value));
  }
  if (output === 'json') return jsonText({ ...attributes, data, problems: [...problems] }, forPerson);
  const verdict =
    problems.length === 0 ? (isSigned ? 'verified' : 'verified, but for its signature') : problems.join('; ');
  const { type, subject, time } = attributes;
  const actor = plain((data as { actor?: { subject?: string } } | null)?.actor?.subject);
  const lines = [
    `${plain(time)}  ${plain(type)}  (${visible(verdict)})`,
    `  subject  ${plain(subject)}`,
    ...(actor === '' ? [] : [`  actor    ${actor}`]),
  ];
  return `${lines.join('\n')}\n${indented(jsonText((data as JsonObject | null)?.body ?? null, true))}`;
}

function parse(body: Buffer): JsonValue {
  try {
    return JSON.parse(body.toString()) as JsonValue;
  } catch {
    return body.toString();
  }
}

/** What the sender has escaped; what is not escaped properly stays as it is. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');
