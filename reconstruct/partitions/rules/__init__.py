"""The rules that one partition's evidence can judge: ``book.py`` lists them, with their judges; the other files are one
subject each."""
