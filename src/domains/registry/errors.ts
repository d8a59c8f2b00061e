/** Error codes of the OCI distribution specification, and TAG_INVALID, which its clients know from Docker. */
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

/** What the registry refuses. Its message may be shown to clients and says what would be right. */
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
