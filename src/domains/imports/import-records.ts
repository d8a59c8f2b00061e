import { create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { type FieldViolation, invalid } from '../../base/errors.ts';
import {
  type Outcome,
  OutcomeSchema,
  type Refusal,
  RefusalSchema,
} from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import type { Resource } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { type Upsert, type UpsertResult, upsertAll } from '../../resource/upsert.ts';

/** A batch is one transaction, and nothing else runs on SQLite meanwhile: a thousand take some tenths of a second. */
const MAX_RECORDS = 1000;

/** How records are judged. */
interface Judge<R> {
  /** The request field that holds the records. */
  readonly field: string;
  idOf(record: R): string;
  /** What is wrong with a record; then it is refused. */
  problemsOf(record: R): readonly FieldViolation[];
}

/** How records of one kind become resources. */
export interface Importer<S extends DescMessage, R = MessageShape<S>> extends Judge<R> {
  readonly resource: Resource<S>;
  /** The field of a record by which it is known. */
  readonly idField: string;
  wanted(record: R, parent: string, now: number): Upsert<MessageShape<S>>;
}

/** Takes in the records of a batch, each of which becomes one resource. */
export function importRecords<S extends DescMessage, R>(
  { db, now }: Pick<WriteContext, 'db' | 'now'>,
  importer: Importer<S, R>,
  parent: string,
  records: readonly R[],
): Promise<Outcome> {
  const elsewhere = { field: importer.idField, description: 'belongs to another group of this organization' };
  return takeIn(importer, records, async (taken) => {
    const wanted = taken.map((record) => importer.wanted(record, parent, now));
    const results = await upsertAll(db, importer.resource, parent, wanted, now);
    return results.map((result) => (result === 'elsewhere' ? elsewhere : result));
  });
}

/** What became of a record, or why it could not be taken after all. */
type Taken = Exclude<UpsertResult, 'elsewhere'> | FieldViolation;

/** Takes in the records of a batch. Each is taken whole or refused whole, and a refusal does not keep its neighbours out. */
export async function takeIn<R>(
  judge: Judge<R>,
  records: readonly R[],
  put: (taken: readonly R[]) => Promise<readonly Taken[]>,
): Promise<Outcome> {
  const { field } = judge;
  if (records.length > MAX_RECORDS)
    throw invalid(field, `must have at most ${MAX_RECORDS} records; send several batches`);
  const refusals: Refusal[] = [];
  const refuse = (index: number, problem: FieldViolation): void => {
    const id = judge.idOf(records[index] as R);
    refusals.push(create(RefusalSchema, { index, id, field: problem.field, reason: problem.description }));
  };
  const taken = [...records.keys()].filter((index) => {
    const [problem] = judge.problemsOf(records[index] as R);
    if (problem) refuse(index, problem);
    return problem === undefined;
  });

  const counts = { created: 0, updated: 0, unchanged: 0 };
  for (const [i, result] of (await put(taken.map((index) => records[index] as R))).entries()) {
    if (typeof result === 'string') counts[result]++;
    else refuse(taken[i] as number, result);
  }
  refusals.sort((a, b) => a.index - b.index);
  return create(OutcomeSchema, { ...counts, refusals });
}
