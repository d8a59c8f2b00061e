#!/bin/sh
# Starts wharf with its flags, which src/cli/v8-flags.ts explains. A shebang cannot pass flags on every system. The Node of
# the package is preferred, because the Node in the PATH can be too old.
here=$(dirname "$(readlink -f "$0")")
node=$here/../../node_modules/node/bin/node
[ -x "$node" ] || node=node
exec "$node" --heap-growing-percent=100 --max-semi-space-size=16 --disable-sigusr1 "$here/wharf.js" "$@"
