/** A file does not have the format that its name says, or is truncated. The message continues the name of the file. */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFileError';
}
