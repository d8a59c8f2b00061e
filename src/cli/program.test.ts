import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from './program.ts';

/** What `--help` prints, examples included. */
function helpOf(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => void parts.push(part) }).outputHelp();
  return parts.join('');
}

const withDescendants = (command: Command): Command[] => [command, ...command.commands.flatMap(withDescendants)];

test('every command has a description and an example', () => {
  const commands = withDescendants(createProgram());
  assert.ok(commands.length >= 5);
  for (const command of commands) {
    assert.notEqual(command.description(), '', command.name());
    assert.match(helpOf(command), /\nExample:\n {2}\S/, command.name());
  }
});
