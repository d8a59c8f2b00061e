import { accountAssociations, groupInvites, identityProviders, mappings } from '../pairs/entrances.ts';
import { groups, identities, roleBindings, roles } from '../pairs/people.ts';
import { repos, tags } from '../pairs/registry.ts';
import { everywhere } from '../support/everywhere.ts';
import { testPair } from '../support/pairs.ts';

everywhere('v1 and v2 of one resource', (bench) => {
  testPair(bench, groups);
  testPair(bench, identities);
  testPair(bench, roles);
  testPair(bench, roleBindings);
  testPair(bench, identityProviders);
  testPair(bench, mappings);
  testPair(bench, groupInvites);
  testPair(bench, accountAssociations);
  testPair(bench, repos);
  testPair(bench, tags);
});
