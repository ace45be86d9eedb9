"""A payments service as a process of its own: the outside world in the demo, and the proof of "once" in tests.

It imports neither Django nor anything of the product, so that it lives and dies apart from both.
"""
