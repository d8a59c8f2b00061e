#!/bin/sh
# Docker runs this program with a PATH on which Node can be missing or too old.
here=$(dirname "$(readlink -f "$0")")
. "$here/find-node.sh"
exec "$node" --disable-sigusr1 --disable-warning=ExperimentalWarning "$here/docker-credential-wharf.js" "$@"
