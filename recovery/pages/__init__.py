"""The console's pages of what waits for people."""
