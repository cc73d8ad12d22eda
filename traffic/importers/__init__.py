"""Other people's traffic files as workloads, one format a file.

Every slip in a file is a BadInput sentence with file and line; nothing in a file is skipped silently.
"""
