"""`trawl`, the fleet from the command line. One file per command; `main.py` has the errors and exit codes."""
