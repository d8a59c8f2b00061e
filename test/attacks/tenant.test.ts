// Attacks of an identity with rights in its own organization on other organizations, and on identities with more rights.
import './tenant/captured-logins.ts';
import './tenant/email-of-others.ts';
import './tenant/event-loop-blocks.ts';
import './tenant/followed-repos.ts';
import './tenant/founding-machines.ts';
import './tenant/forged-page-token-and-issuer.ts';
import './tenant/invites-by-email.ts';
import './tenant/issuer-patterns.ts';
import './tenant/last-owner.ts';
import './tenant/organization-names.ts';
import './tenant/private-issuers.ts';
import './tenant/quotas.ts';
import './tenant/registrations.ts';
import './tenant/registry-quotas.ts';
import './tenant/stronger-identities.ts';
import './tenant/subscriptions.ts';
import './tenant/two-organizations.ts';
