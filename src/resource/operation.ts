import type { DescMessage, Message } from '@bufbuild/protobuf';
import type { CapabilitySet } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Method } from '../contract/method.ts';
import type { Maybe, Reader, Transaction } from '../store/store.ts';

/** Who is calling, and what they may do where. */
export interface Caller {
  /** The uid of the identity; empty for nobody. */
  readonly uid: string;
  /** What events say about who acted. */
  readonly actor: { readonly subject: string; readonly act?: Readonly<Record<string, string>> } | undefined;
  /** Whether the caller holds all of `capabilities` at `uid` or above it. */
  can(capabilities: readonly Capability[], uid: string): boolean;
  /** What is missing at `uid` of what somebody wants to hand out: nobody gives more than they hold. */
  lacks(wanted: CapabilitySet, uid: string): CapabilitySet;
  /** The outermost groups at which the caller holds all of `capabilities`, in order. */
  reach(capabilities: readonly Capability[]): readonly string[];
}

interface Context {
  readonly method: Method;
  readonly caller: Caller;
  /** The `authorization` value as it was sent, for the few methods that take the token itself apart. */
  readonly authorization: string | undefined;
  /** The time of this call in milliseconds: every timestamp a call writes is the same. */
  readonly now: number;
}

export interface ReadContext extends Context {
  readonly db: Reader;
}

export interface WriteContext extends Context {
  readonly db: Transaction;
  /** Says that this call changed nothing, as when something that was gone is deleted again: then there is no event. */
  unchanged(): void;
  /** Sends something beside the answer for which its message has no field: a header over REST, metadata over gRPC. */
  setHeader(name: string, value: string): void;
}

/** What the outbox says about a change. */
export interface EventFacts {
  readonly subject: string;
  /** Values of the extension attributes that the contract names for the method. */
  readonly extensions: Readonly<Record<string, string>>;
  readonly body: { readonly schema: DescMessage; readonly message: Message } | undefined;
}

/** What a method does, once the caller may and the request is read. */
export type Operation =
  | { readonly mode: 'read'; run(ctx: ReadContext, request: Message): Maybe<Message> }
  | { readonly mode: 'pages'; run(ctx: ReadContext, request: Message): Pages }
  | {
      readonly mode: 'write';
      /** Says that `run` adds and changes nothing: see WriteOptions. */
      readonly adds?: boolean | undefined;
      /** What must not keep a transaction waiting, such as asking another server; `run` gets what it answers. */
      prepare?(ctx: ReadContext, request: Message): Promise<unknown>;
      run(ctx: WriteContext, request: Message, prepared: unknown): Maybe<Message>;
      /** Required when the contract gives the method an event. */
      event?(ctx: WriteContext, request: Message, response: Message): EventFacts;
    };

/**
 * An answer that is a list of any length, part by part: each is a message of the answer's type with some of the items, and
 * the last is returned. A part is made when it is asked for, so that no more of them are held than somebody takes.
 */
export type Pages = AsyncIterableIterator<Message, Message>;

/** Operations by method id. */
export type Operations = Readonly<Record<string, Operation>>;
