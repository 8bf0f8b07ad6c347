"""The commands of `trawl`, one file each."""
