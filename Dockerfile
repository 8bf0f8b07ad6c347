# One image for every role; docker-compose.yml says which command each service runs.
#   docker build -t trawl .          docker run --rm --init trawl trawl --help
# Start it with an init (compose: `init: true`): it reaps what crawlers leave behind and passes signals on.

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/trawl
WORKDIR /src

# The dependencies first, in one layer: it is built again only when one of these two files changes.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb')); \
print(*p['build-system']['requires'], *p['project']['dependencies'], *p['project']['optional-dependencies']['postgres'], sep='\n')" > requirements.txt \
 && /opt/trawl/bin/pip install -r requirements.txt -c constraints.txt

COPY . .
RUN /opt/trawl/bin/pip install --no-deps --no-build-isolation packaging/frontier .


FROM python:3.12-slim
# The image is the application: in it, unlike in an environment where the wheel is a guest, its packages are importable everywhere.
ENV PATH=/opt/trawl/bin:$PATH \
    PYTHONPATH=/opt/trawl/lib/python3.12/site-packages/trawl_fleet \
    PYTHONUNBUFFERED=1 \
    TRAWL_DATA_DIR=/data \
    TRAWL_HEALTH_DIR=/dev/shm/trawl \
    TRAWL_SITES_DIR=/app/sites
# /data belongs to the user: a new volume that is mounted there takes its owner over.
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin trawl \
 && install -d -o trawl -g trawl /data
COPY --from=build /opt/trawl /opt/trawl
WORKDIR /app
COPY scrapy.cfg ./
COPY workers/process/health_check.py ./health.py
COPY sites ./sites
USER trawl
# Of the command below. Another role has another argument: docker-compose.yml has one for each service.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["python", "-I", "-S", "/app/health.py", "/dev/shm/trawl/worker"]
CMD ["celery", "-A", "tasks", "worker"]
