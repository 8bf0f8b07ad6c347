#!/bin/sh
# Makes Redis users for deploy/compose.users.yml, once, with `trawl config acl` of the image: deploy/users/redis.acl (what each may do, and
# the SHA-256 of its password) and deploy/users/NAME (its URL). What exists already stays as it is.
set -eu
cd "$(dirname "$0")/.."

[ ! -e deploy/users ] || exit 0
value() { sed -n "s/^$1=//p" .env | tail -n 1; }

namespace=${TRAWL_NAMESPACE:-$(value TRAWL_NAMESPACE)}
image=${TRAWL_IMAGE:-$(value TRAWL_IMAGE)}
tag=${TRAWL_TAG:-$(value TRAWL_TAG)}
umask 077
made=$(mktemp -d deploy/users.XXXXXX)
trap 'rm -rf "$made"' EXIT
docker run --rm --network none --entrypoint sh -e "TRAWL_NAMESPACE=${namespace:-fleet}" "${image:-trawl}:${tag:-latest}" -ec \
  'trawl config acl --aclfile --passwords /tmp/passwords; sed "s/^/password /" /tmp/passwords' > "$made/all"
# The password of .env opens PING alone then, which is what Redis's health check asks.
hash=$(value TRAWL_REDIS_PASSWORD | tr -d '\n' | sha256sum | cut -d ' ' -f 1)
{
  echo "user default on #$hash resetkeys resetchannels -@all +ping"
  grep '^user ' "$made/all"
} > "$made/redis.acl"
sed -n 's/^password //p' "$made/all" | while read -r name password; do
  echo "redis://$name:$password@redis:6379/0" > "$made/$name"
done
rm "$made/all"
# Read by the containers' users with the permissions that the files have; the folder is its owner's alone.
chmod 644 "$made"/*
mv "$made" deploy/users
echo "made deploy/users"
