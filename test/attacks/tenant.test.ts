// Attacks of an identity with rights in its own organization on other organizations, and on identities with more rights.
import './tenant/captured-logins.ts';
import './tenant/forged-page-token-and-issuer.ts';
<<<<<<< HEAD
import './tenant/subscriptions.ts';
=======
import './tenant/invites-by-email.ts';
>>>>>>> 9ae7167 (Only issuers that the organization of an invite trusts prove an e-mail address)
