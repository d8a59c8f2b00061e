import { getSetting } from '../../../store/settings.ts';
import type { Reader } from '../../../store/store.ts';

/** The setting with the uid of the organization that the first start created: the organization of the operator. */
export const FIRST_ORGANIZATION = 'bootstrap.organization';

export const firstOrganization = (db: Reader): Promise<string | undefined> => getSetting(db, FIRST_ORGANIZATION);
