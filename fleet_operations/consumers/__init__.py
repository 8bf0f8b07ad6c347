"""Takes a service's items out of Redis: into files, a database, or to an HTTP address (`trawl items consume`)."""
