import { create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { type FieldViolation, invalid } from '../../base/errors.ts';
import { mapInSlices, startSlices } from '../../base/slices.ts';
import {
  type Outcome,
  OutcomeSchema,
  type Refusal,
  RefusalSchema,
} from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import type { Resource } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { type Upsert, type UpsertResult, upsertAll } from '../../resource/upsert.ts';

/** A batch is one transaction, which delays all others on SQLite. A thousand records take some tenths of a second. */
const MAX_RECORDS = 1000;

/**
 * A batch is stored in parts, between which the server handles other requests. A part ends with this many values in its
 * records, which take about 20 ms. On PostgreSQL each part takes a few round trips.
 */
const PART_VALUES = 1000;

/** How the records of an import are validated. */
interface RecordRules<R> {
  /** The request field that contains the records. */
  readonly field: string;
  /** The id of a record in its refusal. */
  idOf(record: R): string;
  /** A record with any problem is refused. */
  problemsOf(record: R): readonly FieldViolation[];
}

/** How records of one type become resources. */
export interface Importer<S extends DescMessage, R = MessageShape<S>> extends RecordRules<R> {
  readonly resource: Resource<S>;
  /** The field of a record that identifies it. */
  readonly idField: string;
  toUpsert(record: R, parent: string, now: number): Upsert<MessageShape<S>>;
}

/** Imports a batch of records, each of which becomes one resource. */
export function importRecords<S extends DescMessage, R>(
  { db, now }: Pick<WriteContext, 'db' | 'now'>,
  importer: Importer<S, R>,
  parent: string,
  records: readonly R[],
): Promise<Outcome> {
  const elsewhere = { field: importer.idField, description: 'belongs to another group of this organization' };
  return importBatch(importer, records, async (part) => {
    const upserts = part.map((record) => importer.toUpsert(record, parent, now));
    const results = await upsertAll(db, importer.resource, parent, upserts, now);
    return results.map((result) => (result === 'elsewhere' ? elsewhere : result));
  });
}

/** What happened to a valid record. A FieldViolation says why it was refused after all. */
export type RecordResult = Exclude<UpsertResult, 'elsewhere'> | FieldViolation;

/**
 * Imports a batch of records. Each record is stored completely or refused; a refusal does not affect the others. `put`
 * stores a part of the valid records, and sees what it has stored of the parts before.
 */
export async function importBatch<R>(
  rules: RecordRules<R>,
  records: readonly R[],
  put: (part: readonly R[]) => Promise<readonly RecordResult[]>,
): Promise<Outcome> {
  const { field } = rules;
  if (records.length > MAX_RECORDS)
    throw invalid(field, `must have at most ${MAX_RECORDS} records; send several batches`);
  const refusals: Refusal[] = [];
  const refuse = (index: number, problem: FieldViolation): void => {
    const id = rules.idOf(records[index] as R);
    refusals.push(create(RefusalSchema, { index, id, field: problem.field, reason: problem.description }));
  };
  const slices = startSlices();
  const problems = await mapInSlices(records, (record) => rules.problemsOf(record)[0], slices);
  const valid = [...records.keys()].filter((index) => {
    const problem = problems[index];
    if (problem) refuse(index, problem);
    return problem === undefined;
  });

  const counts = { created: 0, updated: 0, unchanged: 0 };
  for (const part of partsOf(valid, (index) => sizeOf(records[index]))) {
    await slices.next();
    for (const [i, result] of (await put(part.map((index) => records[index] as R))).entries()) {
      if (typeof result === 'string') counts[result]++;
      else refuse(part[i] as number, result);
    }
  }
  refusals.sort((a, b) => a.index - b.index);
  return create(OutcomeSchema, { ...counts, refusals });
}

/** Divides items into parts of PART_VALUES values or of one item. Without items there is one empty part. */
function* partsOf<T>(items: readonly T[], valuesOf: (item: T) => number): Generator<readonly T[]> {
  let part: T[] = [];
  let values = 0;
  for (const item of items) {
    part.push(item);
    values += valuesOf(item);
    if (values < PART_VALUES) continue;
    yield part;
    part = [];
    values = 0;
  }
  if (part.length > 0 || items.length === 0) yield part;
}

/** The number of values in a record: its fields, and those of the messages in its lists. An estimate is enough. */
function sizeOf(record: unknown): number {
  if (typeof record !== 'object' || record === null || record instanceof Uint8Array) return 1;
  return Object.values(record).reduce((sum: number, value) => sum + sizeOf(value), 1);
}
