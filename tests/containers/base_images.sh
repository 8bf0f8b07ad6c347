#!/usr/bin/env bash
# Makes stand-ins for the base images of Dockerfile and docker-compose.yml (python:3.12-slim, redis:7-alpine) from the
# packages of this machine's Debian and its CPython 3.12, for engines that reach no image registry. Needs root, mmdebstrap.
#   CACHE=FOLDER       where the tars stay; a second run takes them from there
#   PYTHON_PREFIX=DIR  a CPython 3.12 (default: that of `python3.12`)
# The python image gets this machine's pip.conf and certificates, so that pip works in a build: never push what is built on it.
set -euo pipefail
CACHE=${CACHE:-/var/tmp/trawl-images}
[ -s "$CACHE/python.tar" ] || PYTHON_PREFIX=${PYTHON_PREFIX:-$(python3.12 -c 'import sys; print(sys.base_prefix)')}
export CACHE PYTHON_PREFIX=${PYTHON_PREFIX:-}
mkdir -p "$CACHE"

make_root() { # name, packages, further hooks
  [ -s "$CACHE/$1.tar" ] && return
  # usr-is-merged and its hook: without them usrmerge comes, and all of Perl with it.
  mmdebstrap --quiet --format=tar --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="usr-is-merged,$2" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/apt/sources.list* "$1"/var/log/*.log' \
    "${@:3}" "$(. /etc/os-release; echo "$VERSION_CODENAME")" "$CACHE/$1.part" \
    - < <(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null)
  mv "$CACHE/$1.part" "$CACHE/$1.tar"
}

# CPython as in the official image: without tests, static libraries, bytecode and debugging symbols.
make_root python "ca-certificates,netbase,tzdata,libbz2-1.0,libexpat1,libffi8,liblzma5,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g" \
  --customize-hook='set -e; cd "$PYTHON_PREFIX"; tar --exclude=__pycache__ --exclude="lib/python3.*/test" --exclude="*.a" \
    --exclude="lib/python3.*/site-packages/*" --exclude="lib/python3.*/config-*" --exclude="lib/python3.*/idlelib" \
    --exclude="lib/python3.*/tkinter" --exclude="_tkinter*" -cf - bin lib | tar -xf - -C "$1"/usr/local --no-same-owner
    find "$1"/usr/local -name "*.so*" -type f -exec strip --strip-unneeded {} +
    ln -sf python3.12 "$1"/usr/local/bin/python && chroot "$1" ldconfig && chroot "$1" python -m ensurepip --default-pip
    find "$1"/usr/local -name __pycache__ -prune -exec rm -rf {} +' \
  --customize-hook='cp /etc/pip.conf "$1"/etc/ 2>/dev/null || true; cp /etc/ssl/certs/ca-certificates.crt "$1"/etc/ssl/certs/'
make_root redis redis-server --customize-hook='chroot "$1" install -d -o redis -g redis /data'

PATHS='ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin'
docker image inspect python:3.12-slim >/dev/null 2>&1 || docker import -c "$PATHS" -c 'ENV LANG=C.UTF-8' "$CACHE/python.tar" python:3.12-slim
docker image inspect redis:7-alpine >/dev/null 2>&1 || docker import -c "$PATHS" -c 'USER redis' -c 'WORKDIR /data' -c 'VOLUME /data' \
  "$CACHE/redis.tar" redis:7-alpine

# Debian's Prometheus in the place of the official image, for deploy/compose.monitoring.yml. Debian has no Grafana.
prometheus=$(command -v prometheus || true)
[ -z "$prometheus" ] || docker image inspect prom/prometheus:v3.5.0 >/dev/null 2>&1 || {
  folder=$(mktemp -d)
  cp -L "$prometheus" "$folder/prometheus"
  cat >"$folder/wget" <<'SH'
#!/bin/bash
url=${!#} && url=${url#http://} && host=${url%%/*}
exec 3<>"/dev/tcp/${host%:*}/${host#*:}" && printf 'GET /%s HTTP/1.0\r\n\r\n' "${url#*/}" >&3 && read -r line <&3 && [[ $line == *" 200 "* ]]
SH
  chmod 755 "$folder/wget" "$folder/prometheus"
  printf '%s\n' 'FROM python:3.12-slim' 'COPY prometheus /bin/prometheus' 'COPY wget /usr/local/bin/wget' \
    'RUN install -d -o 65534 -g 65534 /prometheus' 'VOLUME /prometheus' 'USER 65534' 'ENTRYPOINT ["/bin/prometheus"]' \
    >"$folder/Dockerfile"
  docker build --quiet -t prom/prometheus:v3.5.0 "$folder"
  rm -rf "$folder"
}
