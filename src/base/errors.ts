import { TERMS_DOCUMENTS } from './terms.ts';

/** The status codes of google.rpc.Code. gRPC and REST use the same numbers. */
export const Code = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type Code = (typeof Code)[keyof typeof Code];
export type CodeName = keyof typeof Code;

const names = Object.fromEntries(Object.entries(Code).map(([name, code]) => [code, name])) as Record<Code, CodeName>;

/** The name of a code, such as `INVALID_ARGUMENT` for 3. ErrorInfo has it as its reason. */
export const codeName = (code: Code): CodeName => names[code];

export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** A limit that a call would exceed. */
export interface QuotaViolation {
  /** What the limit is for: `identity:<uid>`, `organization:<uid>` or `address:<address>`. */
  readonly subject: string;
  /** Which limit it is, and what to do. */
  readonly description: string;
}

/** A typed detail that clients branch on. src/transport adds ErrorInfo and RequestInfo to every error. */
export type Detail =
  | { readonly type: 'BadRequest'; readonly fieldViolations: readonly FieldViolation[] }
  | {
      readonly type: 'PreconditionFailure';
      readonly violations: readonly { readonly type: string; readonly subject: string; readonly description: string }[];
    }
  | {
      readonly type: 'ResourceInfo';
      readonly resourceType: string;
      readonly resourceName: string;
      readonly description: string;
    }
  | { readonly type: 'QuotaFailure'; readonly violations: readonly QuotaViolation[] }
  | { readonly type: 'RetryInfo'; readonly delayMs: number }
  | {
      readonly type: 'TermsNotAccepted';
      /** The version of the API whose message the client knows. */
      readonly version: 'v1' | 'v2';
      readonly missing: readonly { readonly id: string; readonly label: string; readonly url: string }[];
    };

/** The error type of all layers below src/transport and src/oci, which encode it for REST, gRPC and OCI. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: Code;
  readonly details: readonly Detail[];
  /** Becomes ErrorInfo.metadata: machine-readable facts, such as the missing capability. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(code: Code, message: string, details: readonly Detail[] = [], metadata: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.details = details;
    this.metadata = metadata;
  }
}

/** INVALID_ARGUMENT for one field. `description` says what the field must be. */
export const invalid = (field: string, description: string): ApiError => invalidFields([{ field, description }]);

export function invalidFields(fieldViolations: readonly FieldViolation[]): ApiError {
  const text = fieldViolations.map((v) => `${v.field}: ${v.description}`).join('; ');
  return new ApiError(Code.INVALID_ARGUMENT, `Invalid argument: ${text}`, [{ type: 'BadRequest', fieldViolations }]);
}

/** Runs `work`. If it reports field violations, they are thrown with the field names that `rename` returns. */
export async function renamingFields<T>(rename: (field: string) => string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const badRequest = error instanceof ApiError && error.details.find((detail) => detail.type === 'BadRequest');
    if (!badRequest) throw error;
    const { fieldViolations } = badRequest;
    throw invalidFields(fieldViolations.map(({ field, description }) => ({ field: rename(field), description })));
  }
}

export const notFound = (kind: string, name: string): ApiError =>
  new ApiError(Code.NOT_FOUND, `Not found: ${kind} ${name}`, [
    { type: 'ResourceInfo', resourceType: kind, resourceName: name, description: `${kind} ${name} does not exist` },
  ]);

export const alreadyExists = (kind: string, name: string, description: string): ApiError =>
  new ApiError(Code.ALREADY_EXISTS, `Already exists: ${description}`, [
    { type: 'ResourceInfo', resourceType: kind, resourceName: name, description },
  ]);

export const precondition = (type: string, subject: string, description: string): ApiError =>
  new ApiError(Code.FAILED_PRECONDITION, `Precondition failed: ${description}`, [
    { type: 'PreconditionFailure', violations: [{ type, subject, description }] },
  ]);

/** FAILED_PRECONDITION with the documents that a person must accept before anything else in an organization. */
export function termsNotAccepted(
  organization: string,
  documents: readonly string[],
  urls: ReadonlyMap<string, string>,
  version: 'v1' | 'v2',
): ApiError {
  const ids = documents.join(', ');
  const description = `you have not accepted ${ids} in ${organization}; read and accept with POST /iam/v2/terms/${organization}`;
  const violation = { type: 'TERMS_NOT_ACCEPTED', subject: organization, description };
  const missing = documents.map((id) => ({ id, label: TERMS_DOCUMENTS[id] ?? id, url: urls.get(id) ?? '' }));
  return new ApiError(Code.FAILED_PRECONDITION, `Precondition failed: ${description}`, [
    { type: 'TermsNotAccepted', version, missing },
    { type: 'PreconditionFailure', violations: [violation] },
  ]);
}

export const unauthenticated = (description: string): ApiError =>
  new ApiError(Code.UNAUTHENTICATED, `Unauthenticated: ${description}`);

export const denied = (description: string, metadata: Record<string, string> = {}): ApiError =>
  new ApiError(Code.PERMISSION_DENIED, `Permission denied: ${description}`, [], metadata);

/** The delay for a quota that does not free itself: somebody has to delete something or to raise the limit first. */
const QUOTA_DELAY_MS = 60_000;

/**
 * RESOURCE_EXHAUSTED with the limit that would be exceeded, and the delay after which a retry can succeed. Clients get
 * the delay as RetryInfo and as `Retry-After`.
 */
export const quotaExceeded = (subject: string, description: string, delayMs = QUOTA_DELAY_MS): ApiError =>
  new ApiError(Code.RESOURCE_EXHAUSTED, `Resource exhausted: ${description}`, [
    { type: 'QuotaFailure', violations: [{ subject, description }] },
    { type: 'RetryInfo', delayMs },
  ]);

/** The value of the `Retry-After` header of an error: whole seconds, at least one. Undefined if it has no RetryInfo. */
export function retryAfterOf({ details }: ApiError): string | undefined {
  const info = details.find((detail) => detail.type === 'RetryInfo');
  return info && String(Math.max(1, Math.ceil(info.delayMs / 1000)));
}

export const unimplemented = (method: string): ApiError =>
  new ApiError(Code.UNIMPLEMENTED, `Unimplemented: ${method} is not available on this server`);
