"""The fleet's records in Redis: crawlers, nodes, sizes, rolls, holds, runs, beats, schedules."""
