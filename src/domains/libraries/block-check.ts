import { ancestorsOf, isUid } from '../../base/uid.ts';
import type { Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { LibraryPolicyBindingMode as Mode } from '../../contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import type { LibraryPolicy } from '../../contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import type { MalwareEntry } from '../../contract/gen/wharfinger/libraries/v1/malware_entries_pb.js';
import { formatPurl, parsePurl } from '../../formats/packages/purl.ts';
import { findMessagesByUid, findReferringAny } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { purlTypeOf, rulesOf } from './ecosystems.ts';
import { libraryEntitlements } from './library-entitlements.ts';
import { libraryPolicies } from './library-policies.ts';
import { ecosystemAt, libraryPolicyBindings } from './library-policy-bindings.ts';
import { hasBlockedLicense } from './licenses.ts';
import { readMalware } from './malware-entries.ts';

/** A version of a package that is about to be imported. */
export interface CheckedVersion {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The time of its oldest file. */
  readonly published: number;
}

/** Why a version is blocked. With the mode LOG it is imported all the same. */
export interface Block {
  readonly purl: string;
  readonly packageName: string;
  readonly mode: Mode;
  readonly reason: string;
  /** Empty if a malware entry or an entitlement blocks the version. */
  readonly policyUid: string;
  readonly published: number;
  readonly cooldownDays: number;
  /** The time from which on a version that was too young is accepted. */
  readonly unblocked: number | undefined;
}

/** Returns the blocks of each version. */
export type BlockCheck = (versions: readonly CheckedVersion[], now: number) => Promise<Block[][]>;

const DAY_MS = 24 * 60 * 60 * 1000;

/** Reads what blocks imports of an ecosystem into `group`: the policies and entitlements of it and of its ancestors. */
export async function readBlockCheck(db: Reader, group: string, ecosystem: Ecosystem): Promise<BlockCheck> {
  const places = isUid(group) ? [...ancestorsOf(group), group].map((each) => ecosystemAt(each, ecosystem)) : [];
  const bindings = (await findReferringAny(db, libraryPolicyBindings, 'place', places)).map(({ message }) => message);
  const entitlements = await findReferringAny(db, libraryEntitlements, 'place', places);
  const found = await findMessagesByUid(db, libraryPolicies, new Set(bindings.map(({ policyUid }) => policyUid)));
  const policies = bindings.flatMap(({ policyUid, mode }) => {
    const policy = found.get(policyUid);
    return policy ? [compile(policy, mode, ecosystem)] : [];
  });
  const cooldown = Math.max(0, ...entitlements.map(({ message }) => message.cooldownDays));
  const enforced = policies.filter(({ mode }) => mode === Mode.ENFORCED);

  return async (versions, now) => {
    const names = versions.map(({ name }) => name);
    const malwareOf = await readMalware(db, group, ecosystem, names);
    return versions.map((version) => {
      const blocks: Block[] = [];
      const block = (mode: Mode, reason: string, policyUid = '', cooldownDays = 0): void => {
        const { name: packageName, published } = version;
        const unblocked = cooldownDays > 0 ? published + cooldownDays * DAY_MS : undefined;
        const purl = purlOf(ecosystem, packageName, version.version);
        blocks.push({ ...{ purl, packageName, mode, reason, policyUid }, ...{ published, cooldownDays, unblocked } });
      };
      const isYounger = (days: number): boolean => now - version.published < days * DAY_MS;

      const malware = malwareOf(version.name, version.version);
      if (malware && !enforced.some((policy) => policy.bypassesMalware(version)))
        block(Mode.ENFORCED, describe(malware));
      if (isYounger(cooldown) && !enforced.some((policy) => policy.bypassesCooldown(version))) {
        block(Mode.ENFORCED, `is younger than the ${cooldown} days of the library entitlement`, '', cooldown);
      }
      for (const { policy, mode, isBlocked, bypassesCooldown } of policies) {
        const { uid, name, cooldownDays = 0, blockedLicenses } = policy;
        if (isBlocked(version)) block(mode, `is on the block list of the library policy ${name}`, uid);
        else if (hasBlockedLicense(version.license, blockedLicenses)) {
          block(mode, `has the license ${version.license}, which the library policy ${name} blocks`, uid);
        } else if (isYounger(cooldownDays) && !bypassesCooldown(version)) {
          block(mode, `is younger than the ${cooldownDays} days of the library policy ${name}`, uid, cooldownDays);
        }
      }
      return blocks;
    });
  };
}

type Matcher = (version: CheckedVersion) => boolean;

/** Prepares the lists of a policy, so that checking a version takes no search in them. */
function compile(policy: LibraryPolicy, mode: Mode, ecosystem: Ecosystem) {
  const { blockList, allowList } = policy;
  return {
    policy,
    mode,
    isBlocked: createMatcher(ecosystem, blockList),
    bypassesMalware: createMatcher(
      ecosystem,
      allowList.filter(({ bypassMalware }) => bypassMalware),
    ),
    bypassesCooldown: createMatcher(
      ecosystem,
      allowList.filter(({ bypassCooldown }) => bypassCooldown),
    ),
  };
}

/** Matches the versions that package URLs name. One without a version names all of its package. */
function createMatcher(ecosystem: Ecosystem, entries: readonly { readonly purl: string }[]): Matcher {
  const { normalizeName, normalizeVersion } = rulesOf(ecosystem);
  const named = new Set<string>();
  for (const { purl } of entries) {
    const { type, name = '', version = '' } = parsePurl(purl) ?? {};
    if (type === purlTypeOf(ecosystem)) named.add(`${normalizeName(name)} ${normalizeVersion(version)}`);
  }
  return ({ name, version }) =>
    named.has(`${normalizeName(name)} `) || named.has(`${normalizeName(name)} ${normalizeVersion(version)}`);
}

const purlOf = (ecosystem: Ecosystem, name: string, version: string): string =>
  formatPurl({ type: purlTypeOf(ecosystem), name, version: rulesOf(ecosystem).normalizeVersion(version) }) ?? name;

const describe = ({ malwareId, reasons: [reason = ''] }: MalwareEntry): string =>
  ['is known to be malicious', malwareId && ` (${malwareId})`, reason && `: ${reason}`].join('');
