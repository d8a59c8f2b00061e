#!/bin/sh
# Docker finds this program on the PATH, where Node may be missing or too old: the one that comes with the package goes first.
here=$(dirname "$(readlink -f "$0")")
node=$here/../../node_modules/node/bin/node
[ -x "$node" ] || node=node
exec "$node" "$here/docker-credential-wharf.ts" "$@"
