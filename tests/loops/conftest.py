from tests.rig.providers import providers

__all__ = ["providers"]
