"""Training jobs of transformers: a model, how it is parallelised, and the DAG of one iteration.

`model` and `job` are what the user names, `volumes` and `timing` its bytes and seconds on the real
cluster, `scale` maps those to the emulated one, `write` puts them into a Program, `specs` reads text.
"""
