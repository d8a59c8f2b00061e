#!/bin/sh
# Installs the Debian packages of debian-packages.txt that are missing. Tests that need one of them are skipped where it
# is not installed, so this does nothing on a machine without apt or without the rights to use it.
set -eu
list=$(dirname "$0")/debian-packages.txt
missing=
for package in $(cat "$list"); do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "install-test-tools: not installed, so their tests are skipped:$missing" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# A package list that is too old names versions that the archive no longer has.
apt-get -o Acquire::Retries=3 update -qq
# Nothing of it starts as a service: the tests start what they need.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
fi
# shellcheck disable=SC2086 # a list of words
apt-get -o Acquire::Retries=3 install -qq -y --no-install-recommends $missing >/dev/null
