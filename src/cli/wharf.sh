#!/bin/sh
# Starts wharf with its flags, which src/cli/v8-flags.ts explains. A shebang cannot pass flags on every system.
here=$(dirname "$(readlink -f "$0")")
. "$here/find-node.sh"
exec "$node" --heap-growing-percent=100 --max-semi-space-size=16 --min-semi-space-size=8 --initial-heap-size=64 --disable-sigusr1 --disable-warning=ExperimentalWarning "$here/wharf.js" "$@"
