/** Returns a number with its noun: `1 backup`, `2 backups`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
