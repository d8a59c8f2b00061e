// Attacks of another user of the machine that the server runs on.
import './local-user/file-permissions.ts';
