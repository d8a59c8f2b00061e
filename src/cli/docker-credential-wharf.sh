#!/bin/sh
# Docker runs this program with a PATH on which Node can be missing or too old. The Node of the package is preferred.
here=$(dirname "$(readlink -f "$0")")
node=$here/../../node_modules/node/bin/node
[ -x "$node" ] || node=node
exec "$node" --disable-sigusr1 "$here/docker-credential-wharf.ts" "$@"
