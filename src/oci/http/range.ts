import type { ByteRange } from '../../blobs/blobs.ts';
import { OciError } from '../errors.ts';

/** The range that a request asks for. Several ranges, or another unit, are ignored (RFC 9110, section 14.2). */
export function rangeOf(header: string | undefined, size: number): ByteRange | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return suffix(Number(last), size);
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  // This includes a range that runs backwards: the conformance suite expects an error for it.
  if (start > end) throw unsatisfiable(size);
  return { start, end };
}

function suffix(length: number, size: number): ByteRange {
  if (length === 0 || size === 0) throw unsatisfiable(size);
  return { start: Math.max(0, size - length), end: size - 1 };
}

const unsatisfiable = (size: number): OciError =>
  new OciError('SIZE_INVALID', `the range must lie within the ${size} bytes of the blob`, {
    status: 416,
    headers: { 'content-range': `bytes */${size}` },
  });

/** The `Content-Range` of a pushed chunk: both ends, without unit or total (distribution-spec, pushing a blob in chunks). */
export function chunkRangeOf(header: string | undefined, length: number | undefined): ByteRange | undefined {
  if (header === undefined) return undefined;
  const [, first, last] = /^(?:bytes[ =])?(\d{1,15})-(\d{1,15})(?:\/(?:\d+|\*))?$/.exec(header.trim()) ?? [];
  if (first === undefined) throw new OciError('BLOB_UPLOAD_INVALID', 'Content-Range must be <first byte>-<last byte>');
  const range = { start: Number(first), end: Number(last) };
  if (range.end < range.start || (length !== undefined && length !== range.end - range.start + 1)) {
    throw new OciError('SIZE_INVALID', 'Content-Range and Content-Length must agree');
  }
  return range;
}
