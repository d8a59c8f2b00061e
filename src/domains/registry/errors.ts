/** Error codes of the OCI distribution specification, and TAG_INVALID of the Docker registry API. */
export type RegistryCode =
  | 'BLOB_UNKNOWN'
  | 'BLOB_UPLOAD_INVALID'
  | 'BLOB_UPLOAD_UNKNOWN'
  | 'DENIED'
  | 'DIGEST_INVALID'
  | 'MANIFEST_BLOB_UNKNOWN'
  | 'MANIFEST_INVALID'
  | 'MANIFEST_UNKNOWN'
  | 'NAME_INVALID'
  | 'NAME_UNKNOWN'
  | 'SIZE_INVALID'
  | 'TAG_INVALID'
  | 'TOOMANYREQUESTS'
  | 'UNAUTHORIZED'
  | 'UNSUPPORTED';

/** An error that the registry returns to its clients. The message says what is wrong and what to do. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly code: RegistryCode;
  readonly detail: Readonly<Record<string, unknown>> | undefined;

  constructor(code: RegistryCode, message: string, detail?: Readonly<Record<string, unknown>>) {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}
