"""The namespaces that a run lives in and dies with: entered (enter), their process 1 (init), their files (mounts)."""
