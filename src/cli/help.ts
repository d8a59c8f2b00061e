import type { Command } from 'commander';

/** Adds examples to the help of a command. A test checks that every command has one. */
export const addExamples = (command: Command, ...lines: string[]): Command =>
  command.addHelpText('after', `\nExample:\n${lines.map((line) => `  ${line}\n`).join('')}`);
