#!/bin/sh
# The published walk-through with plain curl: no header but the token, so that curl sends its bodies as
# application/x-www-form-urlencoded. Needs API (the URL of a server), TOKEN (of an owner), ORG (the uid of the
# organization), ORG_NAME (its name) and STORE_IMAGE, a command that pushes an image to the repository in its argument.
set -eu

fail() {
  echo "walk-through: FAILED: $*" >&2
  exit 1
}

# equal <actual> <expected> <what>
equal() {
  [ "$1" = "$2" ] || fail "$3: '$1' instead of '$2'"
}

# The answers are JSON on one line. text <name>: the first text with this name. `jq` is not needed.
text() {
  sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1
}

# The first text with a name, where sed would find the last one.
first() {
  grep -o "\"$1\": *\"[^\"]*\"" | head -n 1 | sed 's/.*: *"\([^"]*\)"/\1/'
}

# 1. Groups: create, list, update with a mask in the query, delete.
GROUP=$(curl -sS -X POST -H "Authorization: Bearer $TOKEN" "$API/iam/v2/groups/$ORG" -d '{"name": "walk-through"}' | text uid)
[ -n "$GROUP" ] || fail "the group was not created"
FOUND=$(curl -sS -H "Authorization: Bearer $TOKEN" "$API/iam/v2/groups?uidp.childrenOf=$ORG&name=walk-through" | text uid)
equal "$FOUND" "$GROUP" "the group in the list"
DESCRIPTION=$(curl -sS -X PATCH -H "Authorization: Bearer $TOKEN" "$API/iam/v2/groups/$GROUP?updateMask=description" \
  -d '{"description": "moved from the hosted platform"}' | text description)
equal "$DESCRIPTION" "moved from the hosted platform" "the description of the group"

# 2. Repos: create, and the update of the migration guide.
REPO_UID=$(curl -sS -X POST -H "Authorization: Bearer $TOKEN" "$API/registry/v2/repos/$GROUP" -d '{"name": "app"}' | text uid)
[ -n "$REPO_UID" ] || fail "the repo was not created"
DESCRIPTION=$(curl -sS -X PATCH -H "Authorization: Bearer $TOKEN" "$API/registry/v2/repos/$REPO_UID?updateMask=description" \
  -d '{"description": "an app"}' | text description)
equal "$DESCRIPTION" "an app" "the description of the repo"
# The same in v2beta1 and v1, whose PUT replaces the repo.
DESCRIPTION=$(curl -sS -X PATCH -H "Authorization: Bearer $TOKEN" "$API/registry/v2beta1/repos/$REPO_UID?updateMask=description" \
  -d '{"description": "an older app"}' | text description)
equal "$DESCRIPTION" "an older app" "the description of the repo in v2beta1"
DESCRIPTION=$(curl -sS -X PUT -H "Authorization: Bearer $TOKEN" "$API/registry/v1/repos/$REPO_UID" \
  -d '{"name": "app", "description": "the oldest app"}' | first description)
equal "$DESCRIPTION" "the oldest app" "the description of the repo in v1"

# 3. An identity for a CI system, and a role binding for it.
IDENTITY=$(curl -sS -X POST -H "Authorization: Bearer $TOKEN" "$API/iam/v2/identities/$GROUP" \
  -d '{"name": "ci", "claimMatch": {"issuer": "https://issuer.example.com", "subject": "repo:acme/app"}}' | text uid)
[ -n "$IDENTITY" ] || fail "the identity was not created"
ROLE=$(curl -sS -H "Authorization: Bearer $TOKEN" "$API/iam/v2/roles?name=registry.pull" | text uid)
BINDING=$(curl -sS -X POST -H "Authorization: Bearer $TOKEN" "$API/iam/v2/roleBindings/$GROUP" \
  -d "{\"identityUid\": \"$IDENTITY\", \"roleUid\": \"$ROLE\"}" | first uid)
[ -n "$BINDING" ] || fail "the role binding was not created"

# 4. Push two images under one tag, then read the history of the tag with a registry token.
NAME="$ORG_NAME/walk-through/app"
$STORE_IMAGE "$NAME"
REGISTRY_TOKEN=$(curl -sS -u "_token:$TOKEN" "$API/token?scope=repository:$NAME:pull" | first token)
[ -n "$REGISTRY_TOKEN" ] || fail "there is no registry token"
HISTORY=$(curl -sS -H "Authorization: Bearer $REGISTRY_TOKEN" "$API/v2/$NAME/_chainguard/history/1.0")
equal "$(echo "$HISTORY" | grep -o '"digest":"sha256:[0-9a-f]*"' | sort -u | wc -l | tr -d ' ')" 2 "images in the history"
LATER=$(curl -sS -H "Authorization: Bearer $REGISTRY_TOKEN" "$API/v2/$NAME/_chainguard/history/1.0?start=2100-01-01T00:00:00Z")
equal "$LATER" '{"history":[]}' "the history of a later time"

# 5. End of life: every tag is active until the repo declares the life cycle of its version.
STATUS=$(curl -sS -H "Authorization: Bearer $TOKEN" "$API/registry/v1/eoltags?uidp.childrenOf=$REPO_UID" | first tagStatus)
equal "$STATUS" TAG_ACTIVE "the status of the tag"
curl -sS -X POST -H "Authorization: Bearer $TOKEN" "$API/wharfinger/v1/versionLifecycles/$REPO_UID" \
  -d '{"version": "1", "mainPackageName": "app-1", "releaseDate": "2022-04-19", "eolDate": "2025-04-30"}' >/dev/null
EOL=$(curl -sS -H "Authorization: Bearer $TOKEN" "$API/registry/v1/eoltags?uidp.childrenOf=$REPO_UID")
equal "$(echo "$EOL" | first tagStatus)" TAG_INACTIVE "the status of the tag after its end of life"
equal "$(echo "$EOL" | first mainPackageName)" app-1 "the main package of the tag"
equal "$(echo "$EOL" | first eolDate)" 2025-04-30 "the end of life of the tag"

# 6. A refusal is a status in JSON, and everything can be deleted.
CODE=$(curl -sS -o /dev/null -w '%{http_code}' -X PATCH -H "Authorization: Bearer $TOKEN" "$API/iam/v2/groups/$GROUP" -d 'name=form')
equal "$CODE" 400 "the status for a body that is not JSON"
for RESOURCE in "iam/v2/roleBindings/$BINDING" "iam/v2/identities/$IDENTITY" "registry/v2/repos/$REPO_UID" "iam/v2/groups/$GROUP"; do
  CODE=$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE -H "Authorization: Bearer $TOKEN" "$API/$RESOURCE")
  equal "$CODE" 200 "the deletion of $RESOURCE"
done
echo "walk-through: ok"
