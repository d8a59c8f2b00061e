import { compare, valid } from '@renovatebot/pep440';
import { ordered } from './order.ts';

/** Versions of Python packages (PEP 440). */
export const comparePypi = ordered((text) => valid(text) ?? undefined, compare);
