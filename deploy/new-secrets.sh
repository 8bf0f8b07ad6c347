#!/bin/sh
# Makes what is secret: .env (from deploy/.env.example, with passwords of random letters) and deploy/signing.key. An existing .env
# keeps what it has; secrets that it lacks, or that are empty or still change-me, get their lines.
set -eu
cd "$(dirname "$0")/.."

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
value() { sed -n "s/^$1=//p" .env | tail -n 1; }
give() { # NAME VALUE
  grep -v -e "^$1=" -e "^#$1=\$" .env > .env.new || true
  echo "$1=$2" >> .env.new
  cat .env.new > .env
  rm .env.new
  added="$added $1"
}

umask 077
added= made=completed
[ -e .env ] || { cp deploy/.env.example .env; chmod 600 .env; made=made; }
[ -z "$(tail -c 1 .env)" ] || echo >> .env # the last line may have no end
for name in TRAWL_REDIS_PASSWORD FLOWER_BASIC_AUTH GRAFANA_PASSWORD POSTGRES_PASSWORD TRAWL_API_ACT_TOKEN; do
  case "$(value $name)" in
    "" | *change-me)
      if [ $name = FLOWER_BASIC_AUTH ]; then give $name "admin:$(random)"; else give $name "$(random)"; fi ;;
  esac
done
[ -z "$added" ] || echo "$made .env$([ $made = made ] || echo ":$added")"
if [ ! -e deploy/signing.key ]; then
  # Read by the containers' user, 10001, with the permissions that it has here.
  echo "$(random)$(random)" | cut -c1-64 > deploy/signing.key
  chmod 644 deploy/signing.key
  echo "made deploy/signing.key"
fi
