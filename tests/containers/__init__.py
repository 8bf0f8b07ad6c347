"""The image and the compose file under a real engine: build, crawl the demo forum to 100 %, break things, compare.

    python -m tests.containers          needs `docker` with Compose; ends with one line where no engine can run
    python -m tests.containers.readme   the commands of README.md, as printed
    python -m tests.containers.swarm    three engines in a Swarm, and the pipeline that deploys to it

base_images.sh     stand-ins for the two base images, from Debian's packages, for machines without an image registry
own_engine.py      an engine of this run's, where none answers
engine.py          commands of docker and compose
watching.py        what is seen of the fleet from outside, once a second
network.py         packet filters of one container
faults.py          what is done to containers, network_faults.py to their network, node_faults.py to a machine
cluster.py         three engines in network namespaces
pipeline.py        runs jobs of deploy/gitlab-ci.yml
report.py          benchmarks/results/containers.md
"""
