/** Returns milliseconds since the epoch. It is passed as a dependency, so that tests set the time and never sleep. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
