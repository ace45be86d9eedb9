"""The console's pages of runs, agents and workers."""
