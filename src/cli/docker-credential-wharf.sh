#!/bin/sh
# Docker runs this program with a PATH on which Node can be missing or too old.
here=$(dirname "$(readlink -f "$0")")
. "$here/find-node.sh"
exec "$node" --disable-sigusr1 "$here/docker-credential-wharf.js" "$@"
