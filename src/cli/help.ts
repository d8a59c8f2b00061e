import type { Command } from 'commander';

/** Every command shows how it is used; a test sees to it. */
export const example = (command: Command, ...lines: string[]): Command =>
  command.addHelpText('after', `\nExample:\n${lines.map((line) => `  ${line}\n`).join('')}`);
