import type { DescMethod, DescMethodUnary } from '@bufbuild/protobuf';
import type { Capability } from './gen/capabilities/capabilities_pb.js';

export type Verb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One google.api.http binding. */
export interface Route {
  readonly verb: Verb;
  /** Such as `/iam/v2/groups/{uid=**}`. */
  readonly template: string;
  /** `*`, or the proto name of a request field. Undefined when all fields are in the path and the query. */
  readonly body: string | undefined;
}

export interface EventSpec {
  readonly type: string;
  /** CloudEvents extension attributes that the event carries, such as `group`. */
  readonly extensions: readonly string[];
  readonly audience: 'customer' | 'internal';
  /** The capabilities to read what the event contains, where the contract declares them. */
  readonly readableWith: readonly Capability[];
}

/** One row of the method table, read from the options of a method in the contract. */
export interface Method {
  /** `chainguard.platform.iam.v2.GroupsService/GetGroup`, also the gRPC path without its leading slash. */
  readonly id: string;
  /** `iam`, `registry`...: the first part of ErrorInfo.domain. */
  readonly domain: string;
  readonly desc: DescMethodUnary;
  /** Whether the method belongs to v1. The JSON of v1 follows grpc-gateway, by which its clients were made. */
  readonly isV1: boolean;
  readonly routes: readonly Route[];
  /**
   * `public` needs no token and ignores one. `optional` needs no token, but identifies the caller by one. `scoped`
   * checks the capabilities at the uid in `scope`. `server` checks that the caller holds them for the whole server.
   * `unscoped` leaves it to the operation to restrict its result.
   */
  readonly access: 'public' | 'optional' | 'scoped' | 'server' | 'unscoped';
  /** The token that a public method verifies itself, in words. A request without a token is refused before it is read. */
  readonly requiredToken: string | undefined;
  /** What the operation of an unscoped method that is not a List checks itself, in words. */
  readonly handlerCheck: string | undefined;
  /** Whether tokens that are restricted to some groups or capabilities are refused. */
  readonly unrestrictedToken: boolean;
  /** Whether people can call it in an organization whose required documents they have not accepted. */
  readonly beforeTerms: boolean;
  /** The caller needs all of them. */
  readonly capabilities: readonly Capability[];
  /** The proto field path of the uid that is the scope, such as `['group', 'uid']`; empty when there is none. */
  readonly scope: readonly string[];
  readonly event: EventSpec | undefined;
  /** The most values that a request may have: fields, list items and map entries at all depths. */
  readonly maxValues: number;
}

/** The number of values for which decoding and validating a request does not hold the event loop for long. */
export const DEFAULT_MAX_VALUES = 10_000;

/** The id of a method in the method table, such as `chainguard.platform.iam.v2.GroupsService/GetGroup`. */
export const methodId = ({ parent, name }: Pick<DescMethod, 'parent' | 'name'>): string => `${parent.typeName}/${name}`;

/** Whether a method is only for authenticated callers. Other methods take small requests, because anyone can send them. */
export const needsAuthentication = ({ access }: Pick<Method, 'access'>): boolean =>
  access === 'scoped' || access === 'unscoped';
