"""Takes a service's items out of Redis: into files, a bucket or a database (`trawl items consume`)."""
