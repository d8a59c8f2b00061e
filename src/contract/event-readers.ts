import type { Capability } from './gen/capabilities/capabilities_pb.js';
import type { Method } from './method.ts';

/** The capabilities to read what events contain, by the type of the event. */
export type EventReaders = ReadonlyMap<string, readonly Capability[]>;

/**
 * Derives who may receive the events that the methods declare. An event contains a resource, so it takes the capabilities
 * of the Get and List methods of the service, or those that the event declares itself (`readable_with`). Throws when the
 * contract does not decide it, so that the server does not start.
 */
export function eventReaders(methods: readonly Method[]): EventReaders {
  const readers = new Map<string, readonly Capability[]>();
  const undecided = new Map<string, string>();
  for (const { id, desc, event } of methods) {
    if (event?.audience !== 'customer') continue;
    const capabilities = event.readableWith.length > 0 ? event.readableWith : readCapabilities(methods, desc.parent);
    if (capabilities === undefined) undecided.set(event.type, id);
    else if (!areEqual(readers.get(event.type) ?? capabilities, capabilities)) {
      throw new Error(
        `contract: ${id} emits ${event.type}, which another method makes readable with other capabilities`,
      );
    } else readers.set(event.type, capabilities);
  }
  for (const [type, id] of undecided) {
    if (!readers.has(type)) throw new Error(`contract: ${id} must declare readable_with for its event ${type}`);
  }
  return readers;
}

/** The capabilities of the Get and List methods of a service; undefined if there are none, or if the methods differ. */
function readCapabilities(
  methods: readonly Method[],
  service: Method['desc']['parent'],
): readonly Capability[] | undefined {
  const reads = methods.filter(({ desc }) => desc.parent === service && /^(?:Get|List)/.test(desc.name));
  const [first, ...others] = reads.map(({ capabilities }) => capabilities);
  return first && first.length > 0 && others.every((other) => areEqual(first, other)) ? first : undefined;
}

const areEqual = (a: readonly Capability[], b: readonly Capability[]): boolean =>
  a.length === b.length && a.every((capability) => b.includes(capability));
