"""The namespaces that a run lives in and dies with: entered (enter), process 1 (init), files (mounts)."""
