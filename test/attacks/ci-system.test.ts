// Attacks with the short-lived tokens that a build system has.
import './ci-system/registry-tokens.ts';
import './ci-system/restricted-tokens.ts';
import './ci-system/unreasonable-tokens.ts';
