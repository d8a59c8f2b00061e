import { create } from '@bufbuild/protobuf';
import { type FieldViolation, invalid, notFound } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import {
  type AccountAssociation,
  AccountAssociationSchema,
  AccountAssociationsService,
  AccountProviderType,
  type CheckAccountAssociationRequest,
  CheckAccountAssociationResponseSchema,
  CheckStatus,
} from '../../../contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operation, Operations } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';

/** Ties a group to accounts at other providers. A group has one at most, so the uid of the group is its own. */
export const accountAssociations = defineResource({
  kind: 'account association',
  plural: 'account associations',
  schema: AccountAssociationSchema,
  parents: ['group'],
  sharesParentUid: true,
  isScope: true,
  idempotentDelete: true,
  rules: { name: rules.name(), description: rules.description },
  check: problemsOf,
  orders: { name: (association) => association.name },
  event: (change, { uid }) => ({ group: uid, withoutBody: change === 'delete' }),
});

export const accountAssociationOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, accountAssociations, AccountAssociationsService),
  [`${AccountAssociationsService.typeName}/${AccountAssociationsService.method.checkAccountAssociation.name}`]: check,
});

const AWS_ACCOUNT = /^[0-9]{12}$/;
/** Old projects of a Google Workspace have its domain in front. */
const GOOGLE_PROJECT = /^(?:[a-z0-9.-]{1,253}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$/;
const GOOGLE_NUMBER = /^[0-9]{1,20}$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const KEY = /^[\w.-]{1,64}$/;
const INSTALLATION_NAME = /^\P{Cc}{0,255}$/u;
const MAX_ENTRIES = 100;

/** What is wrong with the accounts. What is missing of them, the contract says. */
function problemsOf({ amazon, google, azure, github, chainguard }: AccountAssociation): FieldViolation[] {
  const found: FieldViolation[] = [];
  const expect = (field: string, right: boolean, description: string) => {
    if (!right) found.push({ field, description });
  };
  const expectText = (field: string, text: string | undefined, form: RegExp, description: string) =>
    expect(field, !text || form.test(text), description);
  const expectEntries = (field: string, entries: object = {}, valid: (value: string) => boolean, values: string) => {
    expect(field, Object.keys(entries).length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} entries`);
    expect(
      field,
      Object.keys(entries).every((key) => KEY.test(key)),
      `must have keys that match ${KEY.source}`,
    );
    expect(field, Object.values(entries).every(valid), `must have ${values} as values`);
  };

  expectText('amazon.account', amazon?.account, AWS_ACCOUNT, 'must be 12 digits');
  expectText('google.project_id', google?.projectId, GOOGLE_PROJECT, 'must be the id of a Google Cloud project');
  expectText('google.project_number', google?.projectNumber, GOOGLE_NUMBER, 'must be a number');
  expectText('azure.tenant_id', azure?.tenantId, UUID, 'must be a UUID');
  expectEntries('azure.client_ids', azure?.clientIds, (id) => UUID.test(id), 'UUIDs');
  expectEntries('chainguard.service_bindings', chainguard?.serviceBindings, isUid, 'uids of identities');

  const apps = Object.entries(github?.appInstallations ?? {});
  const installations = apps.flatMap(([, app]) => app.installations);
  const inGitHub = 'github.app_installations';
  expect(inGitHub, apps.length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} apps`);
  expect(inGitHub, installations.length <= MAX_ENTRIES, `must have at most ${MAX_ENTRIES} installations`);
  expect(
    inGitHub,
    apps.every(([id]) => BigInt(id) > 0n),
    'must have positive ids of apps as keys',
  );
  expect(
    inGitHub,
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

/** Never READY: this server has no credentials at any provider, so what it cannot ask it does not claim. */
const check: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { uid, providerType } = request as CheckAccountAssociationRequest;
    const provider = PROVIDERS[providerType];
    if (!provider) throw invalid('provider_type', 'must be one of the providers that there are');
    const stored = await find(db, accountAssociations, uid);
    if (!stored) throw notFound(accountAssociations.kind, uid);
    const isConfigured = (stored.message as AccountAssociation)[provider.account] !== undefined;
    return create(CheckAccountAssociationResponseSchema, {
      status: CheckStatus.NOT_READY,
      ...(isConfigured
        ? {
            reason: 'PROVIDER_NOT_REACHABLE',
            message: `the association names an account at ${provider.name}, but this server has no credentials to ask there`,
          }
        : { reason: 'NOT_CONFIGURED', message: `the association names no account at ${provider.name}` }),
    });
  },
};
