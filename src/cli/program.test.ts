import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import { areaNames } from './areas.ts';
import { addClientCommands } from './client-commands.ts';
import { ExitCode } from './exit-codes.ts';
import { createProgram } from './program.ts';

/** Returns the output of `--help`, with the examples. */
function helpOf(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => void parts.push(part) }).outputHelp();
  return parts.join('');
}

const withDescendants = (command: Command): Command[] => [command, ...command.commands.flatMap(withDescendants)];

test('every command has a description and an example', async () => {
  const commands = withDescendants(await createProgram(areaNames, addClientCommands));
  assert.ok(commands.length >= 45);
  for (const command of commands) {
    assert.notEqual(command.description(), '', command.name());
    assert.match(helpOf(command), /\nExample:\n {2}\S/, command.name());
  }
});

test('every flag has a description', async () => {
  for (const command of withDescendants(await createProgram(areaNames, addClientCommands))) {
    for (const option of command.options) assert.notEqual(option.description, '', `${command.name()} ${option.long}`);
  }
});

test('the help explains every exit code', async () => {
  const help = helpOf(await createProgram([], addClientCommands));
  for (const code of Object.values(ExitCode)) assert.match(help, new RegExp(`\\n {2}${code} {2}\\w`));
});
