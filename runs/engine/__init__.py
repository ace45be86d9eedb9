"""What a worker process does: claim a run, decide, commit the intent, perform it, commit what came of it."""
