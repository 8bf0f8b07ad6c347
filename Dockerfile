# One image for every role; docker-compose.yml says which command each service runs. The target `exporter` is a smaller one for
# metrics and the status page.
#   docker build -t trawl .          docker run --rm --init trawl trawl --help
#   docker build -t trawl-exporter --target exporter .
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/trawl --push .      (several architectures)
# Start it with an init (compose: `init: true`): it reaps what crawlers leave behind and passes signals on.

ARG PYTHON_IMAGE=python:3.12-slim
# A release pins it: --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:...
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# Without pip and setuptools: the image installs nothing. The pip of the base works on it from outside.
RUN python -m venv --without-pip /opt/trawl
WORKDIR /src

# The dependencies first, in one layer: it is built again only when one of these files changes.
COPY pyproject.toml constraints.txt deploy/locked.txt packaging/without_symbols.py ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" > build.txt \
 && pip install -r build.txt -c constraints.txt \
 && pip --python /opt/trawl/bin/python install --no-compile --no-deps --require-hashes -r locked.txt
# What no process reads: tests of packages, and debugging symbols.
RUN find /opt/trawl/lib -type d \( -name tests -o -name test \) -prune -exec rm -rf {} + \
 && python without_symbols.py /opt/trawl/lib

COPY . .
RUN pip wheel --quiet --no-deps --no-build-isolation -C apart=true --wheel-dir /wheels packaging/frontier packaging/reader . \
 && pip --python /opt/trawl/bin/python install --no-compile --no-deps /wheels/*.whl
# The root of a container cannot be written: bytecode is made here, of what the roles import (all of it is three times as large).
# Python's own library has none in the base: without it each start of a process compiles some 400 modules.
RUN cd / && find /usr/local/lib -name __pycache__ -prune -exec rm -rf {} + \
 && find /opt/trawl/lib \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' -o -name '*.h' -o -name '*.c' \) -delete \
 && PYTHONPATH=/opt/trawl/lib/python3.12/site-packages/trawl_fleet /opt/trawl/bin/python /src/packaging/bytecode.py --whole \
 && mkdir /library && cd /usr/local && find lib/python3.12 -name '*.pyc' -not -path '*/site-packages/*' -exec cp --parents -t /library {} + \
 && find bin lib -type f \( -name '*.so*' -o -path bin/python3.12 \) -not -path '*/site-packages/*' -exec cp --parents -t /library {} + \
 && python /src/packaging/without_symbols.py /library
# Of all this what the exporter needs.
RUN python -m venv --without-pip /opt/exporter && /opt/trawl/bin/python /src/packaging/exporter_part.py /opt/exporter \
 && PYTHONPATH=/opt/exporter/lib/python3.12/site-packages/trawl_fleet /opt/exporter/bin/python -c "import monitoring.app"


# The base with bytecode and without debugging symbols of Python's library, and without what only builds or installs (pip), tests,
# and character sets that Python does not use.
FROM ${PYTHON_IMAGE} AS base
COPY --from=build /library /usr/local
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin trawl \
 && cd /usr/local && rm -rf bin/pip* bin/idle* bin/2to3* include lib/pkgconfig /root/.cache \
 && cd lib/python3.12 && rm -rf site-packages/* ensurepip lib2to3 idlelib turtledemo tkinter config-* lib-dynload/_test* test \
 && rm -rf /usr/lib/*-linux-gnu/gconv /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/* /var/cache/*


# One layer in place of the base's: what was removed above would stay in those.
FROM scratch AS clean
COPY --from=base / /
ENV LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    TRAWL_DATA_DIR=/data \
    TRAWL_SITES_DIR=/app/sites
WORKDIR /app
COPY workers/node/health_check.py ./health.py
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"


FROM clean AS exporter
ENV PATH=/opt/trawl/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/trawl/lib/python3.12/site-packages/trawl_fleet
COPY --from=build /opt/exporter /opt/trawl
LABEL org.opencontainers.image.title="trawl-exporter" \
      org.opencontainers.image.description="Metrics and status page of a crawl fleet"
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["python", "-I", "-S", "/app/health.py", "http://127.0.0.1:9410/livez"]
EXPOSE 9410
CMD ["python", "-m", "monitoring.exporter", "--host=0.0.0.0", "--port=9410"]


FROM clean
# The image is the application: in it, unlike in an environment where the wheel is a guest, its packages are importable everywhere.
ENV PATH=/opt/trawl/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/trawl/lib/python3.12/site-packages/trawl_fleet \
    TRAWL_HEALTH_DIR=/dev/shm/trawl
# They belong to the user: a new volume that is mounted there takes its owner over.
RUN install -d -m 700 -o trawl -g trawl /data /backups
COPY --from=build /opt/trawl /opt/trawl
COPY scrapy.cfg ./
COPY sites ./sites
LABEL org.opencontainers.image.title="trawl" \
      org.opencontainers.image.description="A crawl fleet: Celery supervises Scrapy crawlers that share one Redis frontier"
# By number: Kubernetes cannot tell from a name that it is not root.
USER 10001:10001
# Of each role that writes a status file here; a command without one, as `trawl items consume`, is well while it runs.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-I", "-S", "/app/health.py", "/dev/shm/trawl/"]
CMD ["celery", "-A", "tasks", "worker"]
