import type { Duration, FieldMask, Timestamp } from '@bufbuild/protobuf/wkt';

type Instant = Pick<Timestamp, 'seconds' | 'nanos'>;
type Span = Pick<Duration, 'seconds' | 'nanos'>;

const RFC3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/i;
// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999Z: the range of google.protobuf.Timestamp.
const EARLIEST_MS = -62_135_596_800_000;
const LATEST_MS = 253_402_300_799_999;

/** RFC 3339 with any offset, years 1 to 9999. */
export function parseTimestamp(text: string): Instant | undefined {
  const [, local = '', fraction = '', sign, hours = '0', minutes = '0'] = RFC3339.exec(text) ?? [];
  const localMs = Date.parse(`${local}Z`);
  // Date.parse rolls 30 February over into March.
  if (Number.isNaN(localMs) || !new Date(localMs).toISOString().startsWith(local.toUpperCase())) return undefined;
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const ms = sign === '-' ? localMs + offsetMs : localMs - offsetMs;
  if (ms < EARLIEST_MS || ms > LATEST_MS) return undefined;
  return { seconds: BigInt(ms / 1000), nanos: nanosOf(fraction) };
}

/** UTC with exactly three decimals. */
export function formatTimestamp({ seconds, nanos }: Instant): string {
  // A stored value outside of the range must not make the whole page fail.
  const ms = Math.min(Math.max(Number(seconds) * 1000 + Math.floor(nanos / 1_000_000), EARLIEST_MS), LATEST_MS);
  const day = Math.floor(ms / DAY_MS);
  const msOfDay = ms - day * DAY_MS;
  const hours = twoDigits[Math.floor(msOfDay / 3_600_000)];
  const minutes = twoDigits[Math.floor(msOfDay / 60_000) % 60];
  return `${dateOf(day)}T${hours}:${minutes}:${twoDigits[Math.floor(msOfDay / 1000) % 60]}.${threeDigits[msOfDay % 1000]}Z`;
}

// Date.toISOString takes five times as long, and each resource has two timestamps or more.
const DAY_MS = 86_400_000;
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
const threeDigits = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0'));
const dates = new Map<number, string>();

function dateOf(day: number): string {
  let date = dates.get(day);
  if (date === undefined) {
    date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    if (dates.size >= 4096) dates.clear();
    dates.set(day, date);
  }
  return date;
}

const DURATION = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;
/** About 10,000 years: the range of google.protobuf.Duration. */
const MAX_SECONDS = 315_576_000_000;

export function parseDuration(text: string): Span | undefined {
  const [, sign, whole = '', fraction = ''] = DURATION.exec(text) ?? [];
  if (whole === '' || Number(whole) > MAX_SECONDS) return undefined;
  const nanos = nanosOf(fraction);
  return sign === '-' ? { seconds: -BigInt(whole), nanos: nanos && -nanos } : { seconds: BigInt(whole), nanos };
}

/** `3s`, `3.500s`: no decimals, or as many groups of three as the value needs. */
export function formatDuration({ seconds, nanos }: Span): string {
  const sign = seconds < 0n || nanos < 0 ? '-' : '';
  const whole = seconds < 0n ? -seconds : seconds;
  if (nanos === 0) return `${sign}${whole}s`;
  const fraction = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/(?:000){1,2}$/, '');
  return `${sign}${whole}.${fraction}s`;
}

const nanosOf = (fraction: string): number => Number(fraction.padEnd(9, '0'));

const MASK_PATH = /^(?:\*|[A-Za-z_]\w*(?:\.\w+)*)$/;

/** Parses comma-separated paths in camelCase or snake_case to snake_case. Does not check that the fields exist. */
export function parseFieldMask(text: string): Pick<FieldMask, 'paths'> | undefined {
  const paths = text
    .split(',')
    .map((path) => path.trim())
    .filter((path) => path !== '');
  if (!paths.every((path) => MASK_PATH.test(path))) return undefined;
  return { paths: paths.map((path) => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)) };
}

export const formatFieldMask = ({ paths }: Pick<FieldMask, 'paths'>): string => paths.map(camelCase).join(',');

export const camelCase = (snake: string): string =>
  snake.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
