interface RequestHead {
  readonly headers: {
    readonly 'content-length'?: string | undefined;
    readonly 'transfer-encoding'?: string | undefined;
  };
  /** The stream of an HTTP/2 request. */
  readonly stream?: { readonly endAfterHeaders: boolean } | undefined;
}

/**
 * The length of the body of a request in bytes: 0 without a body, undefined if the client does not say it in advance.
 * HTTP/1.1 says so by `transfer-encoding`, HTTP/2 by headers that have no length and do not end the stream.
 */
export function bodyLengthOf({ headers, stream }: RequestHead): number | undefined {
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = headers;
  if (transferEncoding !== undefined) return undefined;
  if (length !== undefined) return Number(length);
  return stream === undefined || stream.endAfterHeaders ? 0 : undefined;
}
