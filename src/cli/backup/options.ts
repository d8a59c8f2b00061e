import { type Command, Option } from 'commander';
import type { BackupTarget } from '../../backup/target.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs } from '../settings/config-file.ts';

export interface BackupOptions {
  readonly output?: Output;
  readonly backup?: string;
}

export const addTarget = (command: Command): Command =>
  command
    .argument('<target>', 'a directory, or s3://bucket/prefix?region=…&endpoint=…')
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));

/** Opens a target and closes it after `work`. */
export async function withTarget<T>(
  location: string,
  work: (target: BackupTarget, runId: string) => Promise<T>,
): Promise<T> {
  const { openTarget } = await import('../../backup/target.ts');
  const { newRunId } = await import('../../backup/runs.ts');
  const runId = newRunId(Date.now());
  const target = openTarget(location, { env: process.env, runId });
  try {
    return await work(target, runId);
  } finally {
    target.close();
  }
}

/** Returns the backups of a target, or the one with this id. The oldest is first. */
export async function selectBackups(target: BackupTarget, id: string | undefined) {
  const { findBackups, requireTarget } = await import('../../backup/manifest.ts');
  await requireTarget(target);
  const backups = await findBackups(target);
  if (id === undefined) return backups;
  const found = backups.filter((backup) => backup.id === id);
  if (found.length > 0) return found;
  throw new CliError(ExitCode.notFound, `${target.name} has no backup ${id}: 'wharf backup list' shows all`);
}

/** Prints a result as JSON or as text, as the user chose. */
export function printResult(command: Command, value: object, asText: () => string): void {
  const { out, width } = terminalOf(command);
  const { output } = command.opts<BackupOptions>();
  out(output === 'json' ? jsonText(value as never, width !== undefined) : asText());
}
