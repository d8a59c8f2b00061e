import type { IncomingTrace, SamplerSettings } from '../base/tracing.ts';

export interface Sampler {
  isCallRecorded(parent: IncomingTrace | undefined): boolean;
}

/**
 * Decides which calls are recorded. What a client sends about itself proves nothing: any client can set the flag
 * `sampled`, and choose a trace id that a ratio accepts. So both count only if a trusted proxy sent them. For others the
 * decision is random.
 */
export function createSampler({ isParentBased, ratio }: SamplerSettings, random: () => number = Math.random): Sampler {
  return {
    isCallRecorded(parent) {
      if (!parent?.isTrusted) return random() < ratio;
      return isParentBased ? parent.isSampled : fractionOf(parent.traceId) < ratio;
    },
  };
}

/** The same number from 0 to 1 for a trace on all servers, so that all record the same traces. */
const fractionOf = (traceId: string): number => Number.parseInt(traceId.slice(-12), 16) / 2 ** 48;
