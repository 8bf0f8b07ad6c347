# Trawl's image, or your own one FROM it, with pg_dump and mysqldump: for backups of PostgreSQL and MariaDB.
#   docker build -t trawl-backup -f deploy/backup.Dockerfile --build-arg IMAGE=trawl .
ARG IMAGE=trawl
FROM ${IMAGE}
USER root
RUN apt-get update -qq && apt-get install -yqq --no-install-recommends postgresql-client mariadb-client && rm -rf /var/lib/apt/lists/*
USER 10001:10001
