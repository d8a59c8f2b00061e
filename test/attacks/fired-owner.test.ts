// Attacks of an identity that has lost its access, and wants to keep or regain it.
import './fired-owner/disabled-people.ts';
import './fired-owner/ended-sessions.ts';
import './fired-owner/invites.ts';
import './fired-owner/refresh-families.ts';
import './fired-owner/subscriptions.ts';
