/** Milliseconds since the epoch. Handed in everywhere time matters, so that tests never sleep. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
