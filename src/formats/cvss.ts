import calculator from 'ae-cvss-calculator';

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

/** Parses a vector of CVSS 2, 3.0, 3.1 or 4.0. Returns undefined if it is invalid or a base metric is missing. */
export function parseCvss(vector: string): Cvss | undefined {
  const [, prefix] = /^(?:CVSS:(3\.[01]|4\.0)\/)?/.exec(vector) ?? [];
  const version = prefix === undefined ? 2 : prefix === '4.0' ? 4 : 3;
  const parts = vector.split('/').slice(version === 2 ? 0 : 1);
  const names = new Set(parts.map((part) => part.split(':')[0]));
  if (names.size < parts.length || !parts.every((part) => metrics[version].test(part))) return undefined;
  const parsed = calculator.fromVector(vector);
  if (!parsed?.isBaseFullyDefined()) return undefined;
  const score = parsed.calculateScores(true).base;
  return score === undefined ? undefined : { version, score, level: levelOf(version, score) };
}

/** Version 2 does not define `none` and `critical`. */
function levelOf(version: Cvss['version'], score: number): SeverityLevel {
  if (score < 4) return score === 0 && version > 2 ? 'none' : 'low';
  if (score < 7) return 'medium';
  return score < 9 || version === 2 ? 'high' : 'critical';
}
