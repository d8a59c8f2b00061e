export type SeverityLevel = 'none' | 'low' | 'medium' | 'high' | 'critical';

/** A parsed CVSS vector. */
export interface Cvss {
  readonly version: 2 | 3 | 4;
  /** 0 to 10: the base score, or in version 4 the only score, which includes all metrics of the vector. */
  readonly score: number;
  readonly level: SeverityLevel;
}

/** The metrics of each version and their values. Checked here, because the calculator logs others to the console. */
const metrics: Readonly<Record<Cvss['version'], RegExp>> = {
  2: /^(?:AV:[LAN]|AC:[HML]|Au:[MSN]|[CIA]:[NPC]|E:(?:U|POC|F|H|ND)|RL:(?:OF|TF|W|U|ND)|RC:(?:UC|UR|C|ND)|CDP:(?:N|L|LM|MH|H|ND)|TD:(?:N|L|M|H|ND)|[CIA]R:(?:L|M|H|ND))$/,
  3: /^(?:AV:[NALP]|AC:[LH]|PR:[NLH]|UI:[NR]|S:[UC]|[CIA]:[NLH]|E:[XUPFH]|RL:[XOTWU]|RC:[XURC]|[CIA]R:[XLMH]|MAV:[XNALP]|MAC:[XLH]|MPR:[XNLH]|MUI:[XNR]|MS:[XUC]|M[CIA]:[XNLH])$/,
  4: /^(?:AV:[NALP]|AC:[LH]|AT:[NP]|PR:[NLH]|UI:[NPA]|[VS][CIA]:[HLN]|E:[XAPU]|[CIA]R:[XHML]|MAV:[XNALP]|MAC:[XLH]|MAT:[XNP]|MPR:[XNLH]|MUI:[XNPA]|MV[CIA]:[XHLN]|MSC:[XHLN]|MS[IA]:[XSHLN]|S:[XNP]|AU:[XNY]|R:[XAUI]|V:[XDC]|RE:[XLMH]|U:(?:X|Clear|Green|Amber|Red))$/,
};

const baseMetrics: Readonly<Record<Cvss['version'], readonly string[]>> = {
  2: ['AV', 'AC', 'Au', 'C', 'I', 'A'],
  3: ['AV', 'AC', 'PR', 'UI', 'S', 'C', 'I', 'A'],
  4: ['AV', 'AC', 'AT', 'PR', 'UI', 'VC', 'VI', 'VA', 'SC', 'SI', 'SA'],
};

/** Returns the version of a vector of CVSS 2, 3.0, 3.1 or 4.0, or undefined if it is invalid or lacks a base metric. */
export function cvssVersionOf(vector: string): Cvss['version'] | undefined {
  const [, prefix] = /^(?:CVSS:(3\.[01]|4\.0)\/)?/.exec(vector) ?? [];
  const version = prefix === undefined ? 2 : prefix === '4.0' ? 4 : 3;
  const parts = vector.split('/').slice(version === 2 ? 0 : 1);
  const names = new Set(parts.map((part) => part.split(':')[0]));
  if (names.size < parts.length || !parts.every((part) => metrics[version].test(part))) return undefined;
  return baseMetrics[version].every((name) => names.has(name)) ? version : undefined;
}

/** Parses a vector, or returns undefined if it is invalid. */
export type CvssParser = (vector: string) => Cvss | undefined;

/** Loads the calculator of scores, which would be a part of every start. */
export async function loadCvssParser(): Promise<CvssParser> {
  const { default: calculator } = await import('ae-cvss-calculator');
  return (vector) => {
    const version = cvssVersionOf(vector);
    const score = version && calculator.fromVector(vector)?.calculateScores(true).base;
    return version === undefined || score === undefined
      ? undefined
      : { version, score, level: levelOf(version, score) };
  };
}

/** Version 2 does not define `none` and `critical`. */
function levelOf(version: Cvss['version'], score: number): SeverityLevel {
  if (score < 4) return score === 0 && version > 2 ? 'none' : 'low';
  if (score < 7) return 'medium';
  return score < 9 || version === 2 ? 'high' : 'critical';
}
