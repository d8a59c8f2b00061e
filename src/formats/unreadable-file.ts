/** A file is not what its name says, or not whole. The message says what is wrong with it: `is not a zip file`. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}
