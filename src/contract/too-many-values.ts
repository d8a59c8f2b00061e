import { type ApiError, invalid } from '../base/errors.ts';

/** The error for a request with more values than its method allows. */
export const tooManyValues = (field: string, max: number): ApiError =>
  invalid(field, `must have at most ${max} values (fields, list items and map entries); send several requests`);
