import { create } from '@bufbuild/protobuf';
import { type FieldViolation, invalid, notFound } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import {
  type AccountAssociation,
  AccountAssociationSchema,
  AccountAssociationsService,
  AccountProviderType,
  CheckAccountAssociationResponseSchema,
  CheckStatus,
} from '../../../contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import { type Operations, readOperation } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';

/** Names the accounts of a group at cloud providers and GitHub. A group has at most one, which shares its uid. */
export const accountAssociations = defineResource({
  kind: 'account association',
  plural: 'account associations',
  schema: AccountAssociationSchema,
  parents: ['group'],
  sharesParentUid: true,
  isScope: true,
  idempotentDelete: true,
  rules: { name: rules.name(), description: rules.description },
  check: accountProblems,
  orders: { name: (association) => association.name },
  event: (_change, { uid }) => ({ group: uid }),
});

export const accountAssociationOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, accountAssociations, AccountAssociationsService),
  ...checkAccountAssociation,
});

const AWS_ACCOUNT = /^[0-9]{12}$/;
/** The server does not use the project, so any text is accepted. */
const projectRule = rules.text();
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const KEY = /^[\w.-]{1,64}$/;
const INSTALLATION_NAME = /^\P{Cc}{0,255}$/u;
const MAX_ENTRIES = 100;

/** Returns the invalid values. The contract declares which fields are required. */
function accountProblems({ amazon, google, azure, github, chainguard }: AccountAssociation): FieldViolation[] {
  const found: FieldViolation[] = [];
  const expect = (field: string, isValid: boolean, description: string) => {
    if (!isValid) found.push({ field, description });
  };
  const expectText = (field: string, text: string | undefined, pattern: RegExp, description: string) =>
    expect(field, !text || pattern.test(text), description);
  const expectEntries = (field: string, entries: object = {}, isValid: (value: string) => boolean, values: string) => {
    expect(field, Object.keys(entries).length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} entries`);
    expect(
      field,
      Object.keys(entries).every((key) => KEY.test(key)),
      `must have keys that match ${KEY.source}`,
    );
    expect(field, Object.values(entries).every(isValid), `must have ${values} as values`);
  };

  expectText('amazon.account', amazon?.account, AWS_ACCOUNT, 'must be 12 digits');
  for (const [field, text = ''] of [
    ['project_id', google?.projectId],
    ['project_number', google?.projectNumber],
  ] as const) {
    const problem = projectRule(text);
    if (problem) expect(`google.${field}`, false, problem);
  }
  expectText('azure.tenant_id', azure?.tenantId, UUID, 'must be a UUID');
  expectEntries('azure.client_ids', azure?.clientIds, (id) => UUID.test(id), 'UUIDs');
  expectEntries('chainguard.service_bindings', chainguard?.serviceBindings, isUid, 'uids of identities');

  const apps = Object.entries(github?.appInstallations ?? {});
  const installations = apps.flatMap(([, app]) => app.installations);
  const appInstallations = 'github.app_installations';
  expect(appInstallations, apps.length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} apps`);
  expect(appInstallations, installations.length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} installations`);
  expect(
    appInstallations,
    apps.every(([id]) => BigInt(id) > 0n),
    'must have the positive ids of apps as keys',
  );
  expect(
    appInstallations,
    installations.every(({ installationId, name }) => installationId > 0n && INSTALLATION_NAME.test(name)),
    'must have installations with a positive installation_id and a name of at most 255 characters on one line',
  );
  return found;
}

const PROVIDERS: Partial<Record<AccountProviderType, { name: string; account: 'google' | 'amazon' | 'azure' }>> = {
  [AccountProviderType.GOOGLE]: { name: 'Google Cloud', account: 'google' },
  [AccountProviderType.AMAZON]: { name: 'AWS', account: 'amazon' },
  [AccountProviderType.AZURE]: { name: 'Azure', account: 'azure' },
};

/** Never returns READY, because this server has no credentials to check an account at its provider. */
const checkAccountAssociation = readOperation(
  AccountAssociationsService.method.checkAccountAssociation,
  async ({ db }, { uid, providerType }) => {
    const provider = PROVIDERS[providerType];
    if (!provider) throw invalid('provider_type', 'must be the provider type of Google, Amazon or Azure');
    const stored = await find(db, accountAssociations, uid);
    if (!stored) throw notFound(accountAssociations.kind, uid);
    const isConfigured = stored.message[provider.account] !== undefined;
    return create(CheckAccountAssociationResponseSchema, {
      status: CheckStatus.NOT_READY,
      ...(isConfigured
        ? {
            reason: 'PROVIDER_NOT_REACHABLE',
            message: `the association names an account at ${provider.name}, but this server has no credentials to check it`,
          }
        : { reason: 'NOT_CONFIGURED', message: `the association names no account at ${provider.name}` }),
    });
  },
);
