import { readFileSync } from 'node:fs';

/** The unit of processor time in /proc. It is the same on every Linux. */
const TICKS_PER_SECOND = 100;

/** Returns the processor time of a process in seconds, or undefined on systems without /proc. */
export function cpuSeconds(pid: number): number | undefined {
  try {
    // The name in parentheses may contain spaces: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Returns the processor time of a process and its children in seconds. */
export function cpuSecondsWithChildren(pid: number): number | undefined {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return [pid, ...children.map(Number)].reduce((sum, id) => sum + (cpuSeconds(id) ?? Number.NaN), 0);
  } catch {
    return undefined;
  }
}

/** Returns the current resident memory of a process in MB. */
export function residentMb(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return (pages * 4096) / 1e6;
}

/** Returns the processor time of this process in microseconds. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
