"""The image and the compose file under a real engine: build, crawl the demo forum to 100 %, break things, compare.

    python -m tests.containers          needs `docker` with Compose, and an engine; ends with one line where there is none

base_images.sh   stand-ins for the two base images, from Debian's packages, for machines without an image registry
engine.py        commands of docker and compose
coverage.py      runs inside worker-control: compares the database with what the forum shows
faults.py        what is done to the containers
"""
