import { readFileSync } from 'node:fs';

/** Clock ticks per second, as every Linux has them. */
const TICKS = 100;

/** Processor time that a process has used, in seconds; nothing where the system does not tell it as Linux does. */
export function cpuSeconds(pid: number): number | undefined {
  try {
    // The name in parentheses may hold spaces: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  } catch {
    return undefined;
  }
}

/** Processor time that a process and its children have used. */
export function cpuSecondsOfAll(pid: number): number | undefined {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return [pid, ...children.map(Number)].reduce((sum, one) => sum + (cpuSeconds(one) ?? Number.NaN), 0);
  } catch {
    return undefined;
  }
}

/** Resident memory in MB, peaks apart. */
export function residentMb(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return (pages * 4096) / 1e6;
}
