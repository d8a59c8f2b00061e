// Attacks of another user of the machine that the server runs on.
import './local-user/file-permissions.ts';
import './local-user/process-list.ts';
import './local-user/settings-file.ts';
