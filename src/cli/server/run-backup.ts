import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { IncompleteBackupError } from '../../backup/incomplete-backup.ts';
import type { LoadedSettings } from '../../load-settings.ts';
import { NO_FILE } from '../../settings-file.ts';
import { ExitCode } from '../exit-codes.ts';

/** The variables by which a worker process knows that it is one. The command must not take itself for a worker. */
const WORKER_VARIABLES = ['NODE_UNIQUE_ID', 'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'];
/** The command gets the values, so it must not read them from a file too. */
const FILE_VARIABLES = ['WHARF_DATABASE_URL_FILE'];
const LOWER_PRIORITY = 10;
const MAX_MESSAGE = 2_000;

type ServerSettings = Pick<LoadedSettings, 'config' | 'file'>;

/** Returns the variables with which the command has the settings of the server. */
export function backupEnvironment({ config, file }: ServerSettings, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own: NodeJS.ProcessEnv = {
    ...env,
    WHARF_DATA: config.data,
    // An empty value counts as unset.
    WHARF_DATABASE_URL: config.databaseUrl ?? '',
    // A flag may have named the file. Without one, the command must not find another.
    WHARF_CONFIG: file ?? NO_FILE,
  };
  for (const variable of [...WORKER_VARIABLES, ...FILE_VARIABLES]) delete own[variable];
  return own;
}

/**
 * Runs `wharf backup create` with the settings of this server, in a process of its own and with lower priority. Rejects
 * with an IncompleteBackupError if the server has lost blobs.
 */
export function runBackupProcess(settings: ServerSettings, target: string, signal: AbortSignal): Promise<void> {
  const { config } = settings;
  const env = backupEnvironment(settings, process.env);
  const args = ['backup', 'create', target, '--keep', config.backupKeep];
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...args], {
    ...{ env, signal, killSignal: 'SIGTERM' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return new Promise((resolve, reject) => {
    let message = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      message = (message + text).slice(-MAX_MESSAGE);
    });
    child.on('spawn', () => {
      try {
        setPriority(child.pid ?? 0, LOWER_PRIORITY);
      } catch {
        // Not permitted in some containers. The backup then has the priority of the server.
      }
    });
    child.on('error', reject);
    child.on('close', (code, killedBy) => {
      if (code === 0) return resolve();
      const lines = message.split('\n').filter((line) => line.startsWith('wharf: '));
      const problem = lines.at(-1)?.slice('wharf: '.length) ?? `wharf backup create ended with ${killedBy ?? code}`;
      reject(code === ExitCode.damaged ? new IncompleteBackupError(problem) : new Error(problem));
    });
  });
}
