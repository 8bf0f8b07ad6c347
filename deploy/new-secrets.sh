#!/bin/sh
# Makes what is secret, once: .env (from deploy/.env.example, with passwords of random letters) and deploy/signing.key.
# What exists already stays as it is.
set -eu
cd "$(dirname "$0")/.."

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ ! -e .env ]; then
  (umask 077 && sed -e "s/^TRAWL_REDIS_PASSWORD=.*/TRAWL_REDIS_PASSWORD=$(random)/" \
    -e "s/^FLOWER_BASIC_AUTH=.*/FLOWER_BASIC_AUTH=admin:$(random)/" \
    -e "s/^#GRAFANA_PASSWORD=.*/GRAFANA_PASSWORD=$(random)/" -e "s/^#POSTGRES_PASSWORD=.*/POSTGRES_PASSWORD=$(random)/" deploy/.env.example > .env)
  echo "made .env"
fi
if [ ! -e deploy/signing.key ]; then
  # Read by the containers' user, 10001, with the permissions that it has here.
  echo "$(random)$(random)" | cut -c1-64 > deploy/signing.key
  chmod 644 deploy/signing.key
  echo "made deploy/signing.key"
fi
