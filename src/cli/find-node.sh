# Sets $node: the Node beside the program, as in an archive; the Node of a clone; or the one on the PATH.
for node in "$here/node" "$here/../node_modules/node/bin/node" node; do
  [ "$node" = node ] || [ -x "$node" ] && break
done
if [ "$node" = node ]; then
  version=$(node --version 2>/dev/null)
  major=${version#v}
  minor=${major#*.}
  major=${major%%.*}
  minor=${minor%%.*}
  if [ -z "$version" ]; then
    echo "wharf: needs Node 22.16 or later, and there is none on the PATH: install it from your package manager or nodejs.org" >&2
    exit 1
  elif [ "$major" -lt 22 ] || { [ "$major" -eq 22 ] && [ "$minor" -lt 16 ]; }; then
    echo "wharf: needs Node 22.16 or later, and the one on the PATH is $version: install a newer one, or use an archive of wharf, which contains it" >&2
    exit 1
  fi
fi
