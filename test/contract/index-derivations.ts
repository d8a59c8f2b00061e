import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { arbitraryMessage } from '../../src/contract/json/arbitrary-message.testing.ts';
import { resources } from '../../src/domains/domains.ts';
import { PARTITION, type Resource } from '../../src/resource/definition.ts';

const FILE = new URL('../data/index-derivations.json', import.meta.url);
const SAMPLES = 12;
const SEED = 1;
const PARENT = '0123456789012345678901234567890123456789';
const TIMES = ['create_time', 'update_time'];

/** What the functions of a declaration return for recorded messages: a hash by the name under which it is stored. */
interface RecordedKind {
  /** Encoded messages in base64. */
  readonly samples: readonly string[];
  readonly hashes: Readonly<Record<string, string>>;
}
export type RecordedDerivations = Readonly<Record<string, RecordedKind>>;

export const readRecorded = (): RecordedDerivations => JSON.parse(readFileSync(FILE, 'utf8')) as RecordedDerivations;

/** Returns the hashes of all orders, facets, references, partitions and unique keys of a declaration. */
export function hashesOf(resource: Resource, samples: readonly string[]): Record<string, string> {
  const { schema, orders, rareOrders, references, facets, hidden, unique, storedName } = resource;
  const messages = samples.map((sample) => fromBinary(schema as DescMessage, Buffer.from(sample, 'base64')));
  const hashes: Record<string, string> = {};
  const add = (name: string, derive: (message: Message) => unknown): void => {
    const values = messages.map((message) => {
      try {
        return derive(message);
      } catch {
        return 'refused';
      }
    });
    hashes[storedName(name)] = createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
  };
  for (const [name, keyOf] of Object.entries({ ...orders, ...rareOrders })) {
    if (!TIMES.includes(name)) add(name, (message) => keyOf(message as never));
  }
  for (const [name, valuesOf] of Object.entries({ ...references, ...facets })) {
    add(name in (orders ?? {}) ? `values of ${name}` : name, (message) => [...valuesOf(message as never, undefined)]);
  }
  if (hidden) {
    const flags = Object.entries(hidden);
    add(PARTITION, (message) => flags.find(([, isHidden]) => isHidden(message as never))?.[0] ?? '');
  }
  if (unique) add('unique', (message) => unique(message as never, PARENT).map(({ key }) => key));
  return hashes;
}

/** Records the declarations as they are. Recorded messages stay, so that only changed functions change a hash. */
export function record(): void {
  const recorded = readRecordedOrNone();
  const kinds = resources
    .toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
    .map((resource) => {
      const samples = recorded[resource.kind]?.samples ?? createSamples(resource);
      return [resource.kind, { samples, hashes: hashesOf(resource, samples) }];
    });
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(kinds), null, 2)}\n`);
}

function readRecordedOrNone(): RecordedDerivations {
  try {
    return readRecorded();
  } catch {
    return {};
  }
}

const createSamples = ({ schema }: Resource): string[] =>
  fc
    .sample(arbitraryMessage(schema), { numRuns: SAMPLES, seed: SEED })
    .map((message) => Buffer.from(toBinary(schema as DescMessage, message)).toString('base64'));

if (import.meta.main) record();
